"""Plan and writing of images in a hierarchy: a group for each, its levels as arrays 0, 1, ..."""

from __future__ import annotations

from collections import Counter

from raconvert.plugin import Bundle, Plan, equivalent, refused

from ...zarr.form import keys_of, options_of
from ...zarr.plan import fits_of, form_of
from ..axes import letters_of, renamed_fit, unseen_fit
from ..options import ONE, check_levels
from .documents import LABELS, Image
from .metadata import KEYS, MARK, OME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from raconvert.files.folder_target import Folder
    from raconvert.plugin import Fit

TITLE = "OME-Zarr"


def plan(
    bundle: Bundle,
    *,
    version: str = "0.5",
    levels: str = "1",
    filter: str = "mean",
    chunks: str = "auto",
    compress: str = "zstd",
) -> Plan:
    """A group for each image; see `Plan`. Raises `UsageError` for invalid options."""
    if levels != ONE:
        check_levels(levels)
    options = options_of(
        "2" if version == "0.4" else "3", chunks, "none", compress, "auto", "auto", checksum=False
    )._replace(separator="/")
    images, fits = _images(bundle)
    named = Bundle(
        [image.array.replace(name=f"{image.group}/0".lstrip("/")) for image in images],
        groups=bundle.groups,
    )
    forms = [
        form_of(array, key, options)
        for array, key in zip(named.arrays, keys_of(named)[0], strict=True)
    ]
    titles = dict(zip(named.names, bundle.names, strict=True))
    fits += [
        fit._replace(array=titles.get(fit.array, fit.array))
        for fit in fits_of(named, forms, options)
        if fit.property != "names" and "other programs see" not in fit.reason
    ]
    fits += _name_fits(bundle, images)

    def write(target: Folder) -> None:
        from .writer import write_images

        write_images(bundle, images, target, options, version, levels, filter)

    return Plan(fits, write, names=bundle.names)


def _images(bundle: Bundle) -> tuple[list[Image], list[Fit]]:
    """The images and their fits; an image is the root if all other arrays are labels."""
    fits: list[Fit] = []
    others = [name for name in bundle.names if not name.startswith(f"{LABELS}/")]
    root = others[0] if len(others) == 1 else None
    images = []
    for array in bundle.arrays:
        lettered = letters_of(array, TITLE, samples=False, ordered=True)
        if lettered.reason:
            fits.append(refused(array.name, "shape", f"{lettered.reason}; `--to zarr` writes any"))
        if lettered.made_up:
            reason = f"OME-Zarr names every axis: {', '.join(lettered.made_up)}"
            fits.append(equivalent(array.name, "metadata", reason))
        renamed = renamed_fit(array, lettered.text) if lettered.text else None
        fits += [fit for fit in (renamed, unseen_fit(array)) if fit is not None]
        letters = lettered.text or "?" * array.ndim
        images.append(Image(array, "" if array.name == root else array.name, letters))
    return images, fits


def _name_fits(bundle: Bundle, images: list[Image]) -> list[Fit]:
    """Fits for names that no group can have, and for attributes that have a meaning in OME."""
    fits = []
    counts = Counter(image.group for image in images)
    order = {group: n for n, group in enumerate(counts) if group}
    for image in images:
        name = image.array.name
        try:
            name.encode()
        except UnicodeEncodeError:
            fits.append(refused(name, "names", "the name is not valid text"))
            continue
        if counts[image.group] > 1:
            fits.append(refused(name, "names", "the name is used twice"))
        # The first image of the bundle among those whose group is around this one
        above = ("/".join(name.split("/")[:n]) for n in range(1, name.count("/") + 1))
        outer = min((group for group in above if group in order), key=order.__getitem__, default="")
        if outer and name[len(outer) + 1 :].split("/")[0].isdecimal():
            fits.append(refused(name, "names", f"it is inside the image '{outer}'"))
        if not image.group and (not name or name != name.strip("/") or len(name) > 1000):
            fits.append(refused(name, "names", "the name is empty, long, or begins with '/'"))
    groups = {"": bundle.attributes, **bundle.groups}
    taken = [key for own in groups.values() for key in own if key in (OME, MARK, *KEYS)]
    if taken:
        reason = f"attributes of the file that have a meaning in OME are left out: {taken[0]}"
        fits.append(equivalent("", "metadata", reason))
    return fits
