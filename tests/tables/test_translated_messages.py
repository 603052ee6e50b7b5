"""The loader and shells write in the user's language; the readers expect English."""

from __future__ import annotations

from tests.cases import each
from tests.kit import explained
from whygpu.readers.failures import failures
from whygpu.readers.log import read_text
from whygpu.tables.translated_messages import in_english


@each(
    ("line", "english"),
    [
        (
            "ImportError: libcudart.so.10.0: ne peut ouvrir le fichier d'objet partagé: Aucun "
            "fichier ou dossier de ce type",
            "ImportError: libcudart.so.10.0: cannot open shared object file: No such file or "
            "directory",
        ),
        (
            "OSError: libcublas.so.11: 无法打开共享对象文件: 没有那个文件或目录",
            "OSError: libcublas.so.11: cannot open shared object file: No such file or directory",
        ),
        ("bash: nvidia-smi: Kommando nicht gefunden.", "bash: nvidia-smi: command not found"),
        ("bash: nvidia-smi：未找到命令", "bash: nvidia-smi: command not found"),
        ("nvidia-smi: Commande introuvable", "nvidia-smi: command not found"),
        ("段错误 (核心已转储)", "Segmentation fault (核心已转储)"),
        ("Instrucción ilegal (`core' generado)", "Illegal instruction (`core' generado)"),
        (
            "./run.sh: Zeile 3:  4711 Getötet                python train.py",
            "./run.sh: line 3: 4711 Killed                python train.py",
        ),
    ],
)
def test_the_message_gets_its_english_wording(line: str, english: str) -> None:
    assert in_english(line) == english


@each(
    "line",
    [
        "Getötete Prozesse: 3",
        "Datei oder Verzeichnis nicht gefunden",
        "der Befehl nicht gefunden: egal",
        "ImportError: libfoo.so.1: invalid ELF header",
    ],
)
def test_other_lines_stay(line: str) -> None:
    assert in_english(line) == line


@each(
    "sentence",
    [
        "Kann die Shared-Object-Datei nicht öffnen: Datei oder Verzeichnis nicht gefunden",
        "no se puede abrir el archivo del objeto compartido: No existe el archivo o el directorio",
        "共有オブジェクトファイルを開けません: そのようなファイルやディレクトリはありません",
    ],
)
def test_a_library_that_is_missing_is_the_same_in_every_language(sentence: str) -> None:
    root = explained(f"ImportError: libcudart.so.11.0: {sentence}").root_causes[0]
    assert root.cause == "cuda-runtime-missing"
    assert "libcudart.so.11.0" in root.message


def test_the_end_of_a_program_is_the_same_in_every_language() -> None:
    log = read_text("epoch 1\nSpeicherzugriffsfehler (Speicherabzug geschrieben)\n")
    assert [failure.kind for failure in failures(log.lines, ())] == ["signal"]
