"""Arithmetic of the emulated device: native kernels over raw addresses, without any notion of a device.

Importing this package imports neither Numba nor NumPy; `emu_kernels.build` does so when the first kernel is asked for.
"""
