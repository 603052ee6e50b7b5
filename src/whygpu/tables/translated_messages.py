"""Messages of the C library and of shells in other languages, with their English wording.

Frameworks write in English everywhere. The loader and the shell write in the language of the user.
The wording is that of the translations of glibc and bash (the folder po of their source).
"""

from __future__ import annotations

from whygpu.model.lazy_regex import late

_NO_SUCH_FILE = (
    *("Datei oder Verzeichnis nicht gefunden", "Aucun fichier ou dossier de ce type"),
    *("No existe el (?:archivo|fichero) o el directorio", "Nessun file o directory"),
    *("File o directory non esistente", "Arquivo ou diretório (?:inexistente|não encontrado)"),
    *("没有那个文件或目录", "沒有此一檔案或目錄", "そのようなファイルやディレクトリはありません"),
    *("그런 파일이나 디렉터리가 없습니다", "Нет такого файла или каталога"),
    *("Nie ma takiego pliku ani katalogu", "Böyle bir dosya ya da dizin yok"),
    *("Bestand of map bestaat niet", "Filen eller katalogen finns inte"),
)
_NO_COMMAND = (
    *("kommando nicht gefunden", "befehl nicht gefunden", "commande introuvable"),
    *("orden no encontrada", "no se encontró la orden", "comando non trovato"),
    *("comando não encontrado", "未找到命令", "找不到指令", "找不到命令"),
    *("コマンドが見つかりません", "команда не найдена", "nie znaleziono polecenia"),
    *("명령을 찾을 수 없음", "명령어를 찾을 수 없음", "명령어를 찾을 수 없습니다"),
)
_SEGMENTATION_FAULT = (
    *("Speicherzugriffsfehler", "Erreur de segmentation", "Violación de segmento"),
    *("Errore di segmentazione", "Falha de segmentação", "段错误", "程式記憶體區段錯誤"),
    *("Ошибка сегментирования", "Naruszenie ochrony pamięci", "세그멘테이션 (?:오류|폴트)"),
)
_ILLEGAL_INSTRUCTION = (
    *("Ungültiger Maschinenbefehl", "Instruction (?:non permise|illégale)", "Instrucción ilegal"),
    *("Istruzione non consentita", "Instrução ilegal", "非法指令", "不正命令です"),
    *("(?:Недопустимая|Некорректная) инструкция",),
)
_KILLED = ("Getötet", "Processus arrêté", "已杀死", "已砍掉", "強制終了", "Убито", "Ucciso")

_OF_THE_LOADER = late(
    # LIBRARY: <the loader could not open it>: <no such file>
    rf"(?P<start>\.so[\d.]{{0,12}} ?: )[^:\n]{{5,80}}: (?:{'|'.join(_NO_SUCH_FILE)})"
)
_OF_A_SHELL = late(
    # On a line of its own, or after the line of a script and the number of the process.
    r"(?:(?P<script>.{0,200}: )\w{1,8} ?(?P<line>\d{1,6})[:：] {1,9}(?P<process>\d{1,9}) {1,9})?"
    rf"(?:(?P<fault>{'|'.join(_SEGMENTATION_FAULT)})|(?P<illegal>{'|'.join(_ILLEGAL_INSTRUCTION)})"
    rf"|(?P<killed>{'|'.join(_KILLED)})(?=$| ))"
)
_ENDS = {"fault": "Segmentation fault", "illegal": "Illegal instruction", "killed": "Killed"}


def in_english(text: str) -> str:
    """The line, with such a message in its English wording."""
    if ".so" in text and (match := _OF_THE_LOADER.search(text)) is not None:
        english = "cannot open shared object file: No such file or directory"
        return f"{text[: match.end('start')]}{english}{text[match.end() :]}"
    if (match := _OF_A_SHELL.match(text)) is not None:
        where = (
            f"{match['script']}line {match['line']}: {match['process']} " if match["line"] else ""
        )
        return f"{where}{_ENDS[match.lastgroup or '']}{text[match.end() :]}"
    sentence = text.rstrip(".")
    if sentence.lower().endswith(_NO_COMMAND):
        ending = next(each for each in _NO_COMMAND if sentence.lower().endswith(each))
        return f"{sentence[: -len(ending)].rstrip(' :：')}: command not found"
    return text
