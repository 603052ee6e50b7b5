"""Report to text: values in, strings out. A renderer never looks at the machine."""
