% raread  Read a plain RA (RawArray) file, following the layout table of the RawArray README.
%
%   a = raread (path)
%
% offset 0 magic "rawarray" | 8 flags | 16 eltype | 24 elbyte | 32 size | 40 ndims | 48 dims | data,
% every header field a little-endian uint64, dims with the fastest-varying dimension first, as here.
% Flag bit 0 (big-endian data) is understood; encoded data is not. Octave has no float16.
function a = raread (path)
  [file, message] = fopen (path, "r", "ieee-le");
  if (file < 0)
    error ("raread: %s: %s", path, message);
  end
  closing = onCleanup (@() fclose (file));
  if (! strcmp (fread (file, [1, 8], "uint8=>char"), "rawarray"))
    error ("raread: %s: not an RA file", path);
  end
  fields = fread (file, 5, "uint64=>uint64");
  flags = fields(1); eltype = fields(2); elbyte = fields(3); bytes = fields(4);
  dims = double (fread (file, double (fields(5)), "uint64=>uint64"))';
  if (flags > 1)
    error ("raread: %s: flags %d", path, flags);
  end
  order = {"ieee-le", "ieee-be"}{flags + 1};

  type = sprintf ("%d,%d", eltype, elbyte);
  switch (type)
    case {"1,1", "1,2", "1,4", "1,8"}
      class_name = sprintf ("int%d", 8 * elbyte);
    case {"2,1", "2,2", "2,4", "2,8"}
      class_name = sprintf ("uint%d", 8 * elbyte);
    case {"3,4", "4,8"}
      class_name = "single";
    case {"3,8", "4,16"}
      class_name = "double";
    case "5,1"
      class_name = "uint8";
    otherwise
      error ("raread: %s: no class for eltype,elbyte %s", path, type);
  end

  count = prod (dims);
  if (bytes != count * double (elbyte))
    error ("raread: %s: size %d is not %d elements of %d bytes", path, bytes, count, elbyte);
  end
  numbers = count * (1 + (eltype == 4));
  a = fread (file, numbers, [class_name "=>" class_name], 0, order);
  if (numel (a) != numbers)
    error ("raread: %s: %d of %d numbers", path, numel (a), numbers);
  end
  if (eltype == 4)
    a = complex (a(1:2:end), a(2:2:end));
  elseif (eltype == 5)
    a = logical (a);
  end
  a = reshape (a, [dims, 1, 1]);
end
