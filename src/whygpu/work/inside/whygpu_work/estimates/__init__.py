"""What a model's training or a function will take of a GPU's memory, told without one."""
