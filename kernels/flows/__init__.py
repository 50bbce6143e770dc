"""The scalar dataflow of each operator family, per architecture. One file per family."""
