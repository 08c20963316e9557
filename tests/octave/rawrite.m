% rawrite  Write an array as a plain RA (RawArray) file, following the RawArray README.
%
%   rawrite (a, path)
%
% The counterpart of raread: flags 0, little-endian, no trailer. Integers of all widths, single,
% double, complex of both, and logical (code 5, one byte each). Dimensions as size (a) lists them.
function rawrite (a, path)
  switch (class (a))
    case {"int8", "int16", "int32", "int64"}
      eltype = 1;
    case {"uint8", "uint16", "uint32", "uint64"}
      eltype = 2;
    case {"single", "double"}
      eltype = 3 + iscomplex (a);
    case "logical"
      eltype = 5;
    otherwise
      error ("rawrite: no RA type for class %s", class (a));
  end
  numbers = a(:).';
  if (eltype == 4)
    numbers = [real(numbers); imag(numbers)];
  elseif (eltype == 5)
    numbers = uint8 (numbers);
  end
  element = zeros (1, 1, class (numbers));
  bytes = sizeof (element) * numel (numbers);
  if (eltype == 4)
    elbyte = 2 * sizeof (element);
  else
    elbyte = sizeof (element);
  end

  [file, message] = fopen (path, "w", "ieee-le");
  if (file < 0)
    error ("rawrite: %s: %s", path, message);
  end
  closing = onCleanup (@() fclose (file));
  fwrite (file, "rawarray", "uint8");
  fwrite (file, uint64 ([0, eltype, elbyte, bytes, ndims(a), size(a)]), "uint64");
  written = fwrite (file, numbers, class (numbers));
  if (written != numel (numbers))
    error ("rawrite: %s: %d of %d numbers", path, written, numel (numbers));
  end
end
