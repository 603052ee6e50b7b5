"""Programs with planted bottlenecks, and how well `whygpu run --profile` names them."""
