"""Face 3: the C ABI. Headers and shared libraries made from the same declarations as the Python faces."""
