"""Objects of xarray, pandas and dask: taken as arrays, and made of them."""
