"""The bundle on disk: named arrays as .ra files with their sidecars, listed in ``bundle.yaml``.

``names``    array names as file names that every system can hold, and nothing outside the folder
``manifest`` the text of ``bundle.yaml``: order, names and files, groups, attributes
``members``  the common parts of the three forms: arrays from members, the text of their sidecars
``folder``   the form that people work in; formats ``bundle``
``zipped``   the same files in one .zip, stored and aligned, mappable in place; format ``zip``
``tarred``   the same in one .tar; format ``tar``
"""
