"""The words in which people speak of GPUs, by the concept that each one stands for.

A word is added here and nowhere else. A row is a concept and its words, separated by commas. A word
that ends with a hyphen is the beginning of words. A word may be in several rows; if several entries
fit the same place of a sentence, the longest counts. Upper case, accents and apostrophes do not
matter. `concepts.py` reads sentences with it, and forgives one wrong letter in a long word.

The languages are English, German, French, Spanish, Portuguese, Russian, Chinese, Japanese, Korean.
"""

from __future__ import annotations

import re

from whygpu.model.lazy_regex import late

_ROWS = """
# What is spoken of
gpu: gpu, gpus, dgpu, cuda, rtx, gtx, geforce, radeon, titan, quadro, graphics card,
  graphics cards, graphic card, graphic cards, graphics, video card, card, cards, grafikkarte-,
  carte graphique, cartes graphiques, tarjeta grafica, tarjetas graficas, la grafica,
  placa de video, placas de video, видеокарт-, гпу, 显卡, 显示卡, 顯卡, グラボ, グラフィックボード,
  グラフィックカード, 그래픽카드, 지피유, gpu memory, gpu memory usage, gpu memory use, gpu ram,
  gpus memory, gpu speicher
cuda: cuda
cpu: cpu, cpus, cpudevice, processor, prozessor, processeur, procesador, processador, процессор-,
  цпу, 处理器
framework: tensorflow, tf, keras, pytorch, py torch, torch, jax, tensor flow
tensorflow: tensorflow, tf, tensor flow
keras: keras, tf keras, tensorflow keras
tfgpu: tensorflow gpu package
cudnn: cudnn
integrated: igpu, integrated, onboard, intel
device: device, devices, gerat, appareil, dispositivo, устройств-, 设备, デバイス, 장치
driver: driver, drivers, treiber, pilote, controlador, драйвер-, 驱动, ドライバ, 드라이버
smi: nvidia smi, nvtop, gpustat, task manager
nvcc: nvcc, toolkit, cudatoolkit
python: python
amd: amd, radeon, rocm, directml, intel arc, intel gpu, xpu
avx: avx, avx2, avx512, avx 512
tpu: tpu, tpus, npu
session: session, sessions, sitzung
memory: memory, vram, ram, gpu memory, gpu memory usage, gpu memory use, gpu ram, gpus memory,
  memory usage, memory use, ram usage, speicher, grafikspeicher, gpu speicher, memoire, memoria,
  памят-, видеопамят-, 显存, 内存, 顯存, メモリ, 메모리, oom, cache
part: layer, layers, weights, graph, graphs, backbone, encoder, base model, my model,
  pretrained model, the model, parameters, embedding, embeddings, pip
operation: peer access, operation, operations, op, feature, attribute, data type, dtype
computer: computer, pc, machine, laptop, system, workstation, whole server, screen, rechner,
  ordinateur, ordenador, computador, компьютер-, 电脑, 电腦, パソコン, 컴퓨터
windows: windows, win10, win11, win 10, win 11
container: docker, container, containers, podman, kubernetes, pod, pods, docker compose,
  контейнер-, 容器, コンテナ, 컨테이너
notebook: jupyter, jupyterlab, notebook, notebooks, pycharm, vscode, vs code, spyder, ide
terminal: terminal, console, command line, shell, outside, different python
input: dataloader, dataloaders, data loader, data loaders, input pipeline, input pipelines,
  tf data, data loading
import: import, imports, importing
recurrent: lstm, gru, rnn, recurrent
process: process, processes, prozess-, processus, proceso, processo, процесс-, 进程, プロセス,
  프로세스
batch: batch, batches, batch size, batchsize
step: step, steps, epoch, epochs, iteration, iterations, batch, batches, call, calls, run, runs,
  initialization, initialisation, epoche, epochen, epoque, epoca, эпох-, 轮, エポック, 에폭
result: result, results, output, outputs, prediction, predictions, accuracy, loss, losses, value,
  values, numbers, answers, score, scores, auc, reward, ergebnis-, resultat-, resultad-, perte,
  perdida, результат-, 结果, 精度, 結果, 손실, 결과
release: version, versions, release, releases, versionen, версия, версию, 版本, バージョン, 버전
requirement: certif-, uncertif-, requirement, requirements, compatib-
# What is done
see: see, sees, seeing, seen, find, finds, finding, found, detect-, detect, detects, detected,
  detecting, recognize, recognise, recognized, recognised, show, shows, showing, list, lists,
  listing, listed, appear, appears, appearing, recogni-, identif-, discover-, visible, available,
  pick up, picks up, picking up, picked up, erkenn-, erkannt, sieht, sehen, gefunden, findet,
  finden, voit, trouve, trouvee, reconn-, encuentr-, encontr-, reconoc-, reconhec-, ve, visto,
  видит, видно, наход-, найти, определя-, обнаруж-, 检测, 识别, 識別, 找, 看, 发现, 可用, 認識,
  検出, 見つか, 見え, 인식, 감지, 찾, 잡
use: use, uses, used, using, utilise, utilize, utilised, utilized, utilises, utilizes, utilising,
  utilizing, engaged, involved, active, usable, benutz-, genutzt, nutzt, nutzen, verwend-,
  utilisee, utilisent, utiliser, usa, usar, usando, usada, usado, utiliza, utilizar, utilizada,
  utilizado, использ-, 用, 使用, 调用, 利用, 使え, 使わ, 使う, 使って, 사용, 쓰
run: run, runs, running, train, trains, training, trained, fit, works on, work on, working on,
  inference, infer, calculat-, compute, computes, computing, lauft, laufen, trainier-, entrain-,
  tourne, entren-, trein-, ejecut-, corre, roda, rodar, запуска-, работает на, обуч-, 训练, 训练中,
  訓練, 运行, 学習, 実行, 학습, 실행, 돌
work: work, works, worked, working, funktioniert, fonctionne, funciona, работает, 工作, 動作, 動か,
  작동
create: creat-, start, starts, open, opens
free: free, freed, freeing, frees, releas-, clear, cleared, clearing, clears, flush-, empty,
  emptied, reset, give back, gives back, freigeb-, freigegeben, liber-, освобо-, 释放, 清空, 清理,
  解放, 해제
grow: grow, grows, growing, grew, increas-, leak, leaks, leaking, leaked, accumul-, more and more,
  fills up, fill up, filling up, creeps up, keeps rising, wachst, steigt, leck, aument-, fuite,
  fuga, vazamento, растет, утечк-, 泄漏, 泄露, 增长, 越来越, リーク, 増え, 누수, 증가, 增加, 上涨,
  增大, 飙升
take: take, grabbing, takes, taking, took, allocat-, grab, grabs, reserv-, occup-, eat, eats, hog,
  hogs, consum-, uses, using, belegt, occupe, ocupa, занима-, 占满, 占用, 占, 使い切, 차지
learn: learn, learns, learning, converge, converges, converging, improve, improving, decreas-,
  going down, go down, lernt, apprend, aprende, обучается, 收敛, 学习
goon: progress, progresses, continue, continues, proceed, go on, goes on, move on, respond,
  responds
support: support, supports, supported, unterstutz-, support-, soport-, suport-, поддерж-, 支持,
  対応, 지원
match: match, matches, matching, fit together, compatible
install: install, installs, installed, installing, installation, set up, setup, setting up,
  installier-, instal-, установ-, 安装, インストール, 설치
update: update, updated, updating, updates, upgrade, upgraded, upgrading, reboot, rebooted,
  rebooting, reinstall, reinstalled, installed, installing, aktualisier-, обнов-, 更新, 升级,
  アップデート, 업데이트
enough: enough, suffisamment, genug, suficiente, 足够
fits: fit, fits, fitting
split: distribute, distributed, split, splitting, parallel, parallelize, scale, in parallel
choose: select, choose, pick, specify, specified, assign, particular, certain, wahlen, auswahlen,
  choisir, elegir, escolher, выбрать, 指定, 选择, 選択, 선택, 지정, restrict
limit: limit, limiting, limits, restrict, restricting, reduce, reducing, cap, control, fraction,
  begrenz-, beschrank-, limiter, limitar, огранич-, 限制, 制限, 제한
disable: disable, disables, disabled, disabling, turn off, turning off, switch off, switching off,
  hide, hiding, hidden, without, without using, avoid, avoiding, prevent, preventing, stop using,
  deaktivier-, abschalten, ausschalten, ohne, desactiv-, sans, sin, desativar, sem, отключ-, без,
  禁用, 关闭, 不用, 不使用, 無効, なしで, 비활성, 없이
stop: stop, keep, avoid, prevent, preventing, stopping
ignore: ignore, ignores, ignoring, ignored, bypass, bypassing, skip, skipping, circumvent,
  override, get around, getting around, ignorier-, ignora-, игнорир-, 忽略, 無視, 무시
enable: enable, activate, make, force, forcing, switch to, turn on
force: force, forcing, switch
need: need, needs, require, requires, required, must, should, have to, brauch-, need to, muss
know: check, checking, tell, know, verify, confirm, sure, find out, test, see if, see whether,
  see that, prufen, verifier, verificar, comprobar, проверить, узнать, 确认, 查看, 検証, 確認,
  확인, list
# How it goes
util: utilization, utilisation, util, utilizaton, load, usage, auslastung, utilizacion, utilizacao,
  taux d utilisation, uso, загрузк-, загруж-, 利用率, 使用率, 占用率, 사용률, 사용율, 이용률
low: low, lower, poor, bad, barely, hardly, idle, idles, idling, drop, drops, dropping, fluctuates,
  fluctuating, up and down, underutilized, underutilised, starving, gering, niedrig, kaum,
  langweilt, faible, baja, bajo, apenas, baixa, baixo, низк-, простаива-, 低, 空闲, 低い, 遊んで,
  낮, spike, spikes, spiking, goes to 0, drops to 0, goes to zero, starve, starves, starved
idle: idle, idles, idling, unused, empty, untouched, ungenutzt, простаива-
busy: fully used, fully utilized, full load, fully utilised, busy
slow: slow, slowly, slower, takes long, takes too long, takes so long, takes forever, forever, takes
  ages, take long, take too long, take so long, take forever, take ages, speedup, speed up, same
  speed, same time, speed, longer, slows down, slow down, more time, langsam-, lent, lente,
  lentement, lento, lenta, медленн-, 慢, 很慢, 遅い, 遅く, 느려, 느리, 느림, faster, bottleneck
slower: slower, longer, more time, slows down, langsamer, plus lent, plus lente, mas lento,
  mas lenta, mais lento, mais lenta, медленнее, 更慢, 遅い, 느려, 느리, faster
minutes: minutes, minute, mins, seconds, hours, stunden, minuten, sekunden, secondes, segundos,
  heures, horas, минут, часов, 分钟, 小时, 시간, takes forever, forever, takes ages
than: than, als, que, чем, 比, より, 보다
full: full, filled, fills, fill, filling, maxed out, saturated, saturee, sature, fills up, voll,
  lleno, llena, cheia, cheio, переполн-, 满, 爆, 爆满, 가득
oom: oom, out of memory, out of gpu memory, runs out of memory, run out of memory,
  ran out of memory, running out of memory, out of vram, outofmemory, outofmemoryerror,
  not enough memory, not enough vram, insufficient memory, resourceexhausted,
  resourceexhaustederror, resource exhausted, outof memory, cuda memory error,
  speicher reicht nicht, zu wenig speicher, memoire insuffisante, memoire gpu saturee,
  memoire saturee, memoria insuficiente, sin memoria, sem memoria, не хватает памят-, нехватк-,
  不足, 爆显存, 显存爆, 内存溢出, 显存溢出, 足りない, 부족
all: all, whole, entire, everything, nearly all, too much, so much, a lot, completely, alles,
  ganzen, tout, toute, todo, toda, вся, всю, 全部, 所有, 占满, 全て, すべて, 모두, 다
hang: hang, hangs, hanging, hung, stuck, freeze, freezes, freezing, frozen, deadlock, deadlocks,
  nothing happens, hangt, friert, bloque, se cuelga, trava, завис-, 卡住, 卡死, 死锁, 固ま,
  フリーズ, 멈춤, 멈춰, 멈추, 止ま
crash: crash, crashes, crashed, crashing, abort, aborts, aborted, segfault, segfaults,
  segmentation fault, dies, died, dying, killed, gets killed, core dumped, sturzt, absturz-,
  plante, se cierra, вылета-, падает, 崩溃, 闪退, クラッシュ, 落ち, 튕
end: ends, ended, exits, exited, stops, stopped, terminate, terminates, terminated, shuts down,
  quits
silent: silently, without message, without any message, without a message, without error,
  without any error, without an error, without warning, without any warning, without errors,
  without traceback, no error, no errors, no message, no messages, no traceback, ohne fehler-,
  ohne meldung, sans erreur, sin error, sem erro, без ошиб-, 没有报错, 没有任何, no reason,
  without reason, without any reason
restart: restart, restarts, restarting, restarted, reboots, rebooting, shuts down, shut down,
  shutdown, turns off, powers off, blue screen, bluescreen, black screen, goes black, startet neu,
  redemarre, se reinicia, reinicia, перезагру-, 重启, 死机, 再起動, 재부팅, 꺼
fail: fail, fails, failed, failing, failure, error, errors, exception, exceptions, throw, throws,
  crash, crashes, crashed, problem, problems, issue, issues, fehler-, erreur-, error-, ошибк-,
  报错, 错误, エラー, 오류, 에러
differ: differ, differs, different, difference, differently, differences, not the same, mismatch-,
  wrong, inaccura-, diverge, diverges, deviate, discrepancy, inconsistent, unterschied-, anders,
  falsch, differen-, diferen-, отлича-, разн-, неверн-, 不同, 不一样, 不一致, 差异, 違う, 異なる,
  다르, 다른, 달라, change, changes, changing, vary, varies
higher: higher, worse, lower, better, larger
same: same, identical
incompatible: mismatch-, incompatib-, wrong, not compatible, conflict-
nan: nan, nans, not a number
determinism: reproducib-, deterministic, determinism, nondeterministic, non deterministic,
  same result, same results, same seed, seed, seeds
each: each, every, each time, every time, every run, each run
unsupported: unsupported, unsupport-, too old, too new
hot: hot, high temperature, temperature is high, overheat-, throttl-, thermal, heat, uberhitz-,
  heiss, surchauffe, calient-, sobrecal-, перегрев-, 过热, 温度, 発熱, 온도
first: first, first time, erste, ersten, premiere, premier, primera, primeira, перв-, 第一, 最初,
  처음, 첫
old: old, older, newer, previous, other gpu, laptop
validation: validation, validating, val, evaluation, evaluate, evaluating, eval, inference,
  testing, predict, prediction, validierung, валидац-, 验证, 推理, 検証, 검증
until: until, before, bis, hasta
after: after, since, nach, seit, apres, depuis, despues, depois, desde, после, 之后, 以后, 后, 後,
  후
gone: gone, closed, close, closing, killed, kill, killing, stopped, finished, ended, exited,
  interrupted, crashed, nothing running, nothing is running, ctrl, exits
held: held, stays, stay, still, occupied, in use, taken, remains, stuck, used, use, belegt, noch,
  todavia, ainda, encore, 还在, 仍
broke: no longer, any more, anymore, broke, broken, gone, lost, missing, mehr
only: only, just, always, nur, immer, ausschliesslich, seulement, que sur, solo, solamente,
  siempre, somente, so, apenas, только, лишь, всегда, 只, 只有, 只能, 仅, だけ, しか, 만
one: only one, just one, one gpu, single gpu, got one, got 1, one card, one device, one of them,
  one is, one of the, only the first, first one, nur eine, un seul, une seule, solo una, una sola,
  apenas uma, только одн-, одна, одну, 一张, 一块, 单卡, 一个, 1枚, 한 개, 하나
expected: expected, expecting, should
many: both, multiple, several, many, dual, multi, multigpu, mirroredstrategy, mirrored strategy,
  multiworkermirroredstrategy, multi gpu, dataparallel, ddp, distributeddataparallel, nccl,
  mehrere, mehreren, beide, plusieurs, varias, varios, ambas, multiplas, несколько, нескольк-, обе,
  多卡, 多张, 多块, 多个, 两张, 两块, 双卡, 复数, 複数, 여러, 다중
nth: second gpu, 2nd gpu, third gpu, 3rd gpu, other gpu, other gpus, another gpu, second card,
  other card, other cards, second graphics card, second one, other one, different gpu, second rtx,
  second gtx, zweite grafikkarte, zweite gpu, zweiten gpu, zweiten grafikkarte, deuxieme gpu,
  deuxieme carte, segunda gpu, segunda grafica, segunda tarjeta, segunda placa, втор-, 第二, 另一,
  2枚目, 두 번째, 두번째, two of, specific gpu, one specific
deprecated: deprecated, removed, obsolete, instead, now
separate: separately, separate, manually, manual, myself, also, too, already
max: max, maximum, largest, biggest, highest, optimal, how large, how big, how much, how many, will
instead: instead, rather, statt, anstatt, au lieu, en vez, en lugar, em vez, вместо, 而不是,
  ではなく, 대신, falls back, fall back, falling back, fallback, fell back
very: so, very, too, extremely, terribly, really, incredibly, super, painfully, ridiculously, way,
  much, such, sehr, zu, tres, trop, muy, demasiado, muito, очень, слишком, 很, 太, 特别, 好,
  とても, すごく, 너무, 아주, 엄청
when: when, as soon as, if, while, with, wenn, sobald, quand, lorsque, cuando, quando, когда
on: on, onto, auf, sur, en, в, 在, 上
# How it is asked or said
how: how, how to, how do i, how can i, is there, way to, possible, can i, could i, want to,
  like to, trying to, need to, option to, wie, kann ich, kann man, comment, comment faire, como,
  как, 如何, 怎么, 怎樣, 怎样, 怎么办, どうやって, どうすれば, 方法, 어떻게, 방법, ich will,
  ich mochte, quiero, je veux, quero, хочу, 想, 고 싶, したい, i want
why: why, how come, warum, wieso, weshalb, pourquoi, por que, porque, почему, 为什么, 为何, 为啥,
  なぜ, どうして, 왜
which: which, what, welch-, quel, quelle, quelles, cual, qual, qué, какой, какая, какую, 哪个,
  什么版本, どの, 어떤
whether: if, whether, ob, wird, 是否
person: my, we, our, why, how, i am, i m, im, i ve, ive, i have, i had, i get, i got, i want,
  i need, i use, i used, i run, i ran, i tried, i try, i install, i installed, i did, i do, i dont,
  i can, i cant, i cannot, i could, i see, i saw, i think, i train, i trained, it stuck, its stuck,
  it is stuck, it hangs, it freezes, it crashes, it takes, it just hangs, it always, ich, mein,
  meine, meinen, meiner, warum, wieso, wie, je, mon, ma, mes, pourquoi, comment, mi, mis, por que,
  como, meu, minha, почему, у меня, моя, мою, мой, как, 我, 为什么, 为何, 怎么, 请问, 如何, 吗, 呢,
  私, 僕, なぜ, どうして, ですか, 내, 제, 왜, 어떻게, 해요, 아요, 어요, 네요, 나요
plea: please help, any help, any idea, any ideas, help me, same error, hilfe, ayuda, ajuda,
  помогите, 求助, 帮忙
trouble: wrong, problem, problems, issue, issues, trouble, missing, instead, only, always, alway,
  help, bug, fail-, error, errors, crash-, hang-, stuck, unexpected-, slow, slower, cannot, unable,
  never, not, no, nothing
resumes: resum-, restart-, restor-, retry-, re try, retrying, on purpose,
  skipping, as requested, from scratch, may be, may take, note that, using shared
# Denies what follows it in the same clause, or else what comes before it
<not: not, no, none, cannot, cant, dont, doesnt, didnt, isnt, arent, wasnt, werent, wont, couldnt,
  wouldnt, hasnt, havent, shouldnt, never, nothing, nobody, unable to, unable, fail to, fails to,
  failed to, failing to, failing, refuse to, refuses to, stopped, stops, nicht, nichts, kein,
  keine, keinen, keiner, nie, pas, n, aucun, aucune, jamais, nao, nunca, ningun, ninguna, nenhum,
  nenhuma, не, нет, ни, never gets
# Denies what is just before it, or else what follows it
<not-after: 不, 没, 沒, 无法, 無法, 未, 没有, ない, ません, なく, できず, 못, 않, 안, 없
# Leaves out the next thing in the same clause, of those in DISABLED
<without: without, without using, without installing, ohne, sans, sin, sem, без
# Leaves out the next thing, or else the one before it
<leave-out: hide, hiding, avoid, avoiding, prevent, preventing, stop, disable, disabling, ignore,
  ignoring, turn off, turning off, switch off, switching off, deaktivier-, desactiv-, desativar,
  отключ-, keep, turn, switch, 禁用, 关闭, 不用, 不使用
# Leaves out the thing before it, or else the next one
<left-out: disabled, hidden, turned off, switched off, off, abschalten, ausschalten, なしで, 없이,
  無効, 비활성
# Begins another clause
<break: but, while, although, though, whereas, however, and, yet, then, because, after, since,
  so that, when, aber, obwohl, und, mais, alors, et, pero, y, aunque, mas, но, хотя, и, а, 但,
  但是, 却, 而, けど, が, のに, 하지만, 는데, 지만
"""


def _rows() -> dict[str, tuple[str, ...]]:
    rows: dict[str, str] = {}
    concept = ""
    for line in _ROWS.splitlines():
        if line.startswith("  "):
            rows[concept] += line
        elif ":" in line:
            concept, _, rows[concept] = line.partition(":")
    return {name: tuple(word.strip() for word in row.split(",")) for name, row in rows.items()}


WORDS = _rows()
DISABLED = frozenset(("gpu", "cuda", "cpu", "cudnn", "avx", "memory"))
"""What a word of `<without` can leave out."""
_DENIABLE = (
    "avx cpu crash create cudnn differ enough fail free full goon gpu grow hang ignore install "
    "know learn match need oom process run same see session slow support take use work"
)
DENIABLE = frozenset(_DENIABLE.split())
"""What a word of `<not` can deny."""

FIGURES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        late(
            r"(?:\b(?:util\w{0,8}|load|usage)|利用率|使用率)(?: ?(?:is|at|of|always|stays|only|just"
            r"|shows|says|[=:为是])){0,3} ?(?:0|zero)\b(?![.\d])"
        ),
        " util §low ",
    ),
    (
        late(
            r"\[ *\]|\b(?:an empty|is empty|empty list|false|zero|returns none|(?:gives?"
            r"|returns?|prints?|shows?|is) 0)\b(?! ?%)"
        ),
        " §none ",
    ),
    (
        late(
            r"list_(?:physical|logical|local)_devices|get_available_gpus|device_count|is_(?:gpu_)?available"
            r"|get_visible_devices|jax\.(?:local_)?devices|default_backend"
        ),
        " §asked ",
    ),
    (
        late(r"(?:^|[a-z]: ?)\W{0,3}(?:can|could|kann|puede|pode|peut|может|можно)\b(?!['’])"),
        " §how §whether ",
    ),
    (late(r"\btensorflow-gpu\b"), " tensorflow §tfgpu "),
    (late(r"\b(?:0|zero) gpus?\b"), " no gpu "),
    (
        late(
            r"(?<!have )(?<!has )(?<!had )(?<!need )(?<!needs )(?<!with )(?<!if )\b(?:no|keine)"
            r" (?:nvidia )?(?:gpus?|cuda)(?: devices?)?(?=\W{0,3}$|[.,;!?]| (?:in|on|inside|at"
            r"|im|auf)\b)"
        ),
        " §nogpu no gpu ",
    ),
    (late(r"\b(?:torch|tf|tensorflow)\.version\.cuda\b"), " §framework cuda §release "),
    (late(r"\b(?:instead of|rather than) (?:(?:the|my|a) )?([gc]pu)s?\b"), r" §instead not \1 "),
    (late(r"(?<![\d.])(?:[0-4]?\d(?:\.\d+)?) ?(?:%|％|percent\b|prozent\b|процент)"), " §low "),
    (late(r"\bbetween \d{1,2} and [1-5]\d\b"), " §low "),
    (late(r"(?<![\d.])(?:9\d|100) ?(?:%|percent\b)"), " §busy §all "),
    (late(r"(?<![\d.])\d+(?:\.\d+)? ?(?:[gm]i?b)\b"), " §size "),
    (late(r"\b(?:[7-9]\d|1\d\d) ?(?:°|degrees|grad\b)"), " §hot "),
    (late(r"\b\d+(?:\.\d+)? or \d+(?:\.\d+)?\b"), " §which "),
    (
        late(
            r"\b(?:[2-9]|1\d|two|three|four|five|six|eight|zwei|drei|vier|deux|trois|quatre"
            r"|dos|tres|cuatro|dois|duas|quatro|две|два|три|четыре)[ -]?(?:x |\*)?(?:(?:of"
            r"|my|the|our|available|nvidia|rtx|gtx|tesla|geforce) ){0,3}(?=gpus?\b|cards?\b"
            r"|graphics|rtx|gtx|[avhplb]\d{1,3}s\b|a[1-6]0{2,3}\b|[hv][12]00\b|[1-5]0[5-9]0s?\b|titan|grafik|cartes"
            r"|tarjetas|placas|видеокарт)"
        ),
        " §many gpu ",
    ),
    (late(r"\b[2-8] ?[x×] ?(?=\w{2,})|[x×] ?[2-8]\b|(?<=[a-z0-9]{4}) ?\*[2-8]\b"), " §many "),
    (late(r"\b(?:[2-8]|[两二三四八]) ?(?:张|块|个|枚|つの|개의|장)"), " §many "),
    (late(r"\b(?:gpu|cuda|device|card) ?[:#=]? ?([1-9])\b(?!\.|\d|%| ?gb)"), " gpu §nth "),
    (late(r"\b(?:gpu|cuda) ?[:#]? ?0\b(?!\.|\d|%)"), " gpu §one "),
    (late(r"\brx ?\d{3,4}\w{0,4}\b|\b[79]\d00 ?xtx?\b|\barc [ab]\d{3}\b"), " gpu §amd "),
    (
        late(
            r"\b(?:[1-5]0[5-9]0|16[56]0)s?(?: ?(?:ti|super|laptop))?\b|\b(?:[avhbl]\d{2,3}"
            r"|a[2-6]000|[tl]4|p100|k80|m\d0|mx\d{3}|\d{3}m)s?\b"
        ),
        " gpu §model ",
    ),
    (late(r"\bcuda[ /-]?(?:toolkit )?v?\d+(?:\.\d+)?\b"), " cuda §number "),
    (
        late(
            r"(?:^|[,;:] |\b(?:so|but|and|or|hi|hello|means?) )(?:is|are|am|was|were|does|do"
            r"|did|will|can|has|have)\b(?=[^?]{0,200}\?)"
        ),
        " §whether ",
    ),
    (late(r"^\W{0,3}(do|does|must|should|is|are)\b"), r" §whether \1 "),
    (
        late(
            r"^\W{0,3}(force|make|use|run|limit|disable|turn off|hide|select|choose|set up"
            r"|set a|install|free|clear|enable|train|stop|restrict|specify|avoid|prevent"
            r"""|reduce|allow|check|verify|list|switch|move|begrenze|deaktiviere)\b(?=[^\n:()=`'\"]{4,70}$)"""
        ),
        r" §how \1 ",
    ),
    (late(r"[?？]\W{0,4}$|[吗呢]$"), " §question "),
)
"""Numbers, names and positions, and the words for them: `§` is before the name of a concept."""
