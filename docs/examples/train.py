"""Stands for any program in the commands of the documentation."""

for epoch in range(3):
    print(f"epoch {epoch + 1}: loss {1 / (epoch + 1):.3f}")
