#!/usr/bin/env python3
"""Writes lesson.json: what `shardlab plan` must answer so that the course's numbers hold.

    python3 make_lesson.py PATH_OF/lesson_numbers.py > lesson.json

lesson_numbers.py computes every number of the course on its own, without Shardlab. This script takes the unrounded
values from it and says for each which plan documents show it. It fails when a value is neither used nor left out
with a reason. What stands in lesson.json:

    scenarios   {id: scenario text}
    plans       {id: {scenario, set: [KEY=VALUE]}}: one document each
    families    {id: {step, scenario, members: [{label, set, legal, expected}]}}: one array of documents each. A member
                that is not legal must be refused; `expected` are numbers of its document. In the array every element
                also has `label`, `legal` and `headroom_fraction`
    values      [{step, name, expected, expression}]: expression.h says what an expression is. A list is expected where
                the expression is a list of expressions, or selects one
    left_out    [{step, name, expected, why}]
    beyond      [{step, name, expected}]: what lesson_numbers.py says that no plan yields (slips, published measurements,
                restart costs), but for the minutes of a step. The course keeps them as figures all the same:
                tests/lessons compares
"""
import importlib.util
import json
import sys

SCENARIO = """accounting = "textbook"

[model]
plugin = "llama"
{model}

[hardware]
plugin = "h100-dgx"
{hardware}
memory = "80 GB"
efficiency = 0.5
network = "rail"

[training]
sequence_length = {s}
micro_batch_size = 1
global_batch_size = {gbs}

[strategy.tensor]
degree = 1
sequence_parallel = false

[strategy.zero]
stage = 0

[strategy.checkpointing]
mode = "none"

[strategy.data]
overlap = "none"

[schedule]
plugin = "pipeline-1f1b"
degree = 1
{more}"""
PRECISION = '\n[precision]\nparameters = "bf16"\ngradients = "bf16"\ngradient_reduce = "bf16"\n'

# Short names of scenario keys, for this script only.
KEYS = {"model": "model.preset", "layers": "model.layers", "kv": "model.kv_heads", "ffn": "model.ffn",
        "n": "hardware.devices", "nodes": "hardware.nodes", "memory": "hardware.memory", "network": "hardware.network",
        "half": "hardware.efficiency_half_tokens", "s": "training.sequence_length", "b": "training.micro_batch_size",
        "gbs": "training.global_batch_size", "t": "strategy.tensor.degree", "sp": "strategy.tensor.sequence_parallel",
        "hidden": "strategy.tensor.overlap", "zero": "strategy.zero.stage", "reduce": "strategy.zero.reduce",
        "recompute": "strategy.checkpointing.mode", "segment": "strategy.checkpointing.segment",
        "d": "strategy.data.degree", "overlap": "strategy.data.overlap", "schedule": "schedule.plugin",
        "p": "schedule.degree", "split": "schedule.layers", "grad": "precision.gradients",
        "wire": "precision.gradient_reduce", "shard": "strategy.fsdp.shard",
        "kept": "strategy.fsdp.reshard_after_forward", "c": "strategy.context.degree", "e": "strategy.expert.degree",
        "order": "mesh.order"}


def load(path):
    spec = importlib.util.spec_from_file_location("lesson_numbers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


N = load(sys.argv[1])
ALL = N.values()
NUMBERS = {slug: {k: x for k, x in v.items() if k not in N.BEYOND[slug]} for slug, v in ALL.items()}
scenarios, plans, families, values, left_out = {}, {}, {}, [], []


def settings(**keys):
    out = []
    for key, value in keys.items():
        if key == "recompute":
            if not value: continue
            value = "full"
        if key == "kept" and value is not None: value = not value
        if value is None: continue
        out.append(f"{KEYS[key]}={str(value).lower() if isinstance(value, bool) else value}")
    return out


def plan(name, scenario, **keys):
    entry = {"scenario": scenario, "set": settings(**keys)}
    assert plans.setdefault(name, entry) == entry, name
    return name


def family(name, step, scenario, members):
    assert members and name not in families and name not in plans
    families[name] = {"step": step, "scenario": scenario, "members": members}


def member(label, legal=True, expected=None, **keys):
    out = {"label": label, "set": settings(**keys)}
    if not legal: out["legal"] = False
    if expected: out["expected"] = expected
    return out


STEP = ""


def value(name, expression):
    values.append({"step": STEP, "name": name, "expected": NUMBERS[STEP][name], "expression": expression})


def without(why, *names):
    for name in names:
        assert name in NUMBERS[STEP], name
        left_out.append({"step": STEP, "name": name, "expected": NUMBERS[STEP][name], "why": why})


# ------------------------------------------------------------------ scenarios: Llama 3.1 70B, default sequence and batch
PRESET = f'preset = "{N.L70.name}"'
DIMENSIONS = (f"layers = {N.L70.L}\nhidden = {N.L70.h}\nheads = {N.L70.heads}\nkv_heads = {N.L70.kv}\n"
              f"head_dim = {N.L70.h // N.L70.heads}\nffn = {N.L70.ffn}\nvocabulary = {N.L70.V}\ntied = false")
DIMENSIONS_8B = (f"layers = {N.L8.L}\nhidden = {N.L8.h}\nheads = {N.L8.heads}\nkv_heads = {N.L8.kv}\n"
                 f"head_dim = {N.L8.h // N.L8.heads}\nffn = {N.L8.ffn}\nvocabulary = {N.L8.V}\ntied = false")
DIMENSIONS_405B = (f"layers = {N.L405.L}\nhidden = {N.L405.h}\nheads = {N.L405.heads}\nkv_heads = {N.L405.kv}\n"
                   f"head_dim = {N.L405.h // N.L405.heads}\nffn = {N.L405.ffn}\nvocabulary = {N.L405.V}\ntied = false")


def scenario(name, model=PRESET, hardware="devices = 1", gbs=1, more=""):
    scenarios[name] = SCENARIO.format(model=model, hardware=hardware, s=N.S, gbs=gbs, more=more)


scenario("devices")                                                     # any number of GPUs
scenario("pod", hardware=f"nodes = {N.SERVERS}", gbs=N.GBS)             # the course's four servers
scenario("pod_precision", hardware=f"nodes = {N.SERVERS}", gbs=N.GBS, more=PRECISION)
scenario("dimensions", model=DIMENSIONS)                                # the same model without its name
scenario("dimensions_8b", model=DIMENSIONS_8B)
scenario("dimensions_405b", model=DIMENSIONS_405B)
for name in ("8x7b", "8x22b"):
    scenario(name, model=f'preset = "mixtral-{name}"')
    scenarios[name] = scenarios[name].replace('plugin = "llama"', 'plugin = "moe"')

# ------------------------------------------------------------------ parts of expressions
rank = lambda q, i, what="total": f"{q}:memory.ranks[{i}].{what}_bytes"
state = lambda q, i=0: f"({rank(q, i, 'parameters')} + {rank(q, i, 'gradients')} + {rank(q, i, 'optimizer')})"
activations = lambda q, i=0: rank(q, i, "activations")
capacity = lambda q: f"{q}:hardware.memory_bytes"
compute = lambda q: f"({q}:time.forward_seconds + {q}:time.backward_seconds + {q}:time.recompute_seconds)"
step = lambda q: f"{q}:time.step_seconds"
mfu = lambda q: f"{q}:throughput.mfu"
peak = lambda q: f"{q}:memory.peak_bytes"
headroom = lambda q: f"{q}:memory.headroom_bytes / {q}:memory.capacity_bytes"
sent = lambda q, axis, what="bytes": f"sum({q}:communication[axis={axis}].{what})"
call = lambda q, axis: f"max({q}:communication[axis={axis}].bytes_per_call)"
link = lambda q, tier: f"{q}:hardware.tiers[{tier}].bandwidth_bytes_per_second"
NVLINK, PORT = 0, 1                                                     # innermost tier first
PASSES = "legal=true,memory.fits=true,headroom_fraction>=0.2"           # a fifth of the memory free


def report(key, q):
    value(key + "_bytes", peak(q))
    value(key + "_headroom_fraction", headroom(q))
    value(key + "_step_seconds", step(q))
    value(key + "_mfu_fraction", mfu(q))


def of_plan(q, pod=N.WORLD, once=False):
    """the keys and the numbers of one of lesson_numbers' plans"""
    keys = {"nodes": pod // N.PER_SERVER if pod != N.WORLD else None, "s": q.s if q.s != N.S else None,
            "gbs": q.gbs if q.gbs != N.GBS else None, "t": q.t, "sp": True if q.t > 1 else None, "p": q.p, "d": q.d,
            "zero": q.zero, "recompute": q.recompute, "reduce": "step" if once else None}
    return keys, {"memory.peak_bytes": q.worst, "time.step_seconds": q.step, "throughput.mfu": q.mfu}


def plan_family(name, slug, qs, pod=N.WORLD, refused=(), **kw):
    """every plan with its numbers, and the plans that must be refused"""
    members = []
    for q in qs:
        keys, expected = of_plan(q, pod, **kw)
        if q.p == 1 or q.zero != 3: expected["time.bubble_fraction"] = q.bubble
        label = N.name(q) + (f"_gbs{q.gbs}" if q.gbs != N.GBS else "")
        members.append(member(label, expected=expected, **keys))
    family(name, slug, "pod", members + list(refused))


def course_plan(name, t, p, d, zero=0, recompute=False, scenario="pod", pod=N.WORLD, **keys):
    return plan(name, scenario, nodes=pod // N.PER_SERVER if pod != N.WORLD else None, t=t,
                sp=keys.pop("sp", True if t > 1 else None), p=p, d=d, zero=zero, recompute=recompute, **keys)


class Course(N.Plan):
    def __init__(self, t, p, d, *args, **kw):
        self.s = kw.get("s", N.S)
        super().__init__(t, p, d, *args, **kw)


N.Plan = Course                                                         # N.plans() makes these

MODELS = (("70b", N.L70), ("405b", N.L405), ("8b", N.L8))


# ------------------------------------------------------------------ the steps
def conventions():
    for short, model in MODELS:
        key, name = f"llama3_1_{short}", model.name
        one = plan(f"one_{short}", "devices", model=name)
        p = 6 if model.L % 4 else 4
        piped = plan(f"piped_{short}", "devices", model=name, n=p, p=p)
        sbh = f"({call(piped, 'pipeline')} / 2)"                        # one bf16 boundary tensor
        hidden = f"({sbh} / {piped}:plan.sequence_length / {piped}:plan.micro_batch_size)"
        value(key + "_L", f"{one}:model.layers")
        value(key + "_h", hidden)
        family(f"heads_{short}", STEP, "devices",
               [member(t, model.heads % t == 0, model=name, n=t, t=t) for t in (1, 2, 4, 8, 16, 32, 64, 128, 256)])
        value(key + "_heads", f"max(heads_{short}:[legal=true].label)")
        # kv and ffn: how far the preset is from the same model with 1 and 2 of them (counts are linear in both)
        base = "dimensions" if short == "70b" else f"dimensions_{short}"
        for dimension, a, b in (("kv", 1, 2), ("ffn", 1024, 2048)):
            low, high = (plan(f"{dimension}{x}_{short}", base, **{dimension: x}) for x in (a, b))
            slope = f"({high}:model.parameters - {low}:model.parameters)"
            value(f"{key}_{dimension}", f"{a} + {b - a} * ({one}:model.parameters - {low}:model.parameters) / {slope}")
        embedding = f"(({rank(piped, 0, 'parameters')} - {rank(piped, 1, 'parameters')}) / 2)"
        value(key + "_V", f"{embedding} / {hidden}")
        value(key + "_parameters", f"{one}:model.parameters")
        value(key + "_parameters", f"{plan('same_' + short, base)}:model.parameters")
        value(key + "_parameters", f"{rank(one, 0, 'parameters')} / 2")
        layer = f"({rank(piped, 1, 'parameters')} / 2 / {piped}:plan.layers[1])"
        value(key + "_layer_parameters", layer)
        if short == "70b":
            no_mlp = "(2 * ffn1024_70b:model.parameters - ffn2048_70b:model.parameters)"
            mlp = f"((one_70b:model.parameters - {no_mlp}) / one_70b:model.layers)"
            value("mlp_parameters", mlp)
            value("attention_parameters", f"{layer} - {mlp} - 2 * {hidden}")
            value("embedding_parameters", embedding)
            t8 = plan("t8", "devices", n=8, t=8)
            value("textbook_no_sp_t8_units", f"{activations(t8)} / ({t8}:model.layers * {sbh})")
    one, chosen = "one_70b", course_plan("chosen", 8, 2, 2, 1)
    value("memory_bytes", capacity(one))
    peak_flops = f"({one}:throughput.model_flops_per_second_per_device / {mfu(one)})"
    achieved = f"({one}:throughput.model_flops_per_token * {one}:plan.sequence_length / {compute(one)})"
    value("peak_flops_per_second", peak_flops)
    value("achieved_flops_per_second", achieved)
    value("efficiency_fraction", f"{achieved} / {peak_flops}")
    value("nvlink_bytes_per_second", link(chosen, NVLINK))
    value("port_bytes_per_second", link(chosen, PORT))
    # Latency of an all-reduce: base, 2(n-q) steps on NVLink, 2(q-1) over the network. Three groups, three unknowns.
    added = {}
    for t in (2, 4, 16):
        rail, late = (plan(f"t{t}{suffix}", "devices", n=t, t=t, network=net)
                      for suffix, net in (("", None), ("_late", "rail-latency")))
        added[t] = f"(({sent(late, 'tensor', 'seconds')} - {sent(rail, 'tensor', 'seconds')}) / {sent(rail, 'tensor', 'count')})"
    local = f"(({added[4]} - {added[2]}) / 4)"
    base = f"({added[2]} - 2 * {local})"
    value("rail_latency_base_seconds", base)
    value("rail_latency_nvlink_step_seconds", local)
    value("rail_latency_network_step_seconds", f"({added[16]} - {base} - 28 * {local}) / 2")
    value("sequence_length", f"{one}:plan.sequence_length")
    value("global_batch_size", f"{chosen}:plan.global_batch_size")
    value("global_batch_tokens", f"{chosen}:plan.global_batch_size * {chosen}:plan.sequence_length")
    value("global_batch_tokens", f"{chosen}:throughput.tokens_per_second * {step(chosen)}")
    value("pod_memory_bytes", f"{chosen}:hardware.devices * {capacity(chosen)}")
    family("pipeline_ranks", STEP, "devices",
           [member(p, N.L70.L % p == 0, n=8 * p, t=8, p=p) for p in range(1, N.L70.L + 1)])
    value("legal_pipeline_ranks", "pipeline_ranks:[legal=true].label")
    for short in ("8x7b", "8x22b"):
        key, one = f"mixtral_{short}_", plan(f"moe_{short}_one", short)
        layers = {"8x7b": N.MX7.L, "8x22b": N.MX22.L}[short]
        less = plan(f"moe_{short}_less", short, layers=layers - 1)
        value(key + "L", f"{one}:model.layers")
        value(key + "parameters", f"{one}:model.parameters")
        value(key + "active_parameters", f"{one}:model.active_parameters")
        value(key + "layer_parameters", f"{one}:model.parameters - {less}:model.parameters")
        without("a preset's dimension, held by the sum of the parameters", *(key + k for k in ("h", "heads", "kv", "ffn", "V")))
    without("the model is an example of step 1; its parameters are held by tests/published", "gpt2_xl_parameters", "gpt2_xl_state_bytes")
    without("compares two conventions of counting operations, which one plan does not hold", "fine_over_6p_s4096")


def one_gpu_70b():
    q = plan("one_70b", "devices", model=N.L70.name)
    for what in ("parameters", "gradients", "optimizer"):
        value({"parameters": "weights"}.get(what, what) + "_bytes", rank(q, 0, what))
    value("state_bytes", state(q))
    value("activations_bytes", activations(q))
    value("sum_bytes", rank(q, 0))
    value("sum_bytes", peak(q))
    value("layer_activations_bytes", f"{activations(q)} / {q}:model.layers")
    value("sum_over_memory", f"{peak(q)} / {capacity(q)}")
    value("state_over_memory", f"{state(q)} / {capacity(q)}")
    value("least_gpus_state", f"ceil({state(q)} / {capacity(q)})")
    value("least_gpus_sum", f"ceil({peak(q)} / {capacity(q)})")


def floor_405b():
    q, pod = plan("one_405b", "devices", model=N.L405.name), plan("pod_405b", "pod", model=N.L405.name, gbs=N.WORLD)
    memory = f"({pod}:hardware.devices * {capacity(pod)})"
    least = f"ceil({state(q)} / {capacity(q)})"
    value("state_bytes", state(q))
    value("pod_memory_bytes", memory)
    value("state_over_pod", f"{state(q)} / {memory}")
    value("state_over_memory", f"{state(q)} / {capacity(q)}")
    value("least_gpus", least)
    value("least_gpus_in_servers", f"{least} / {pod}:hardware.tiers[0].devices")
    value("least_servers", f"ceil({least} / {pod}:hardware.tiers[0].devices)")
    for n in (32, 88, 96, 128):
        value(f"state_n{n}_bytes", state(plan(f"z3_n{n}_405b", "devices", model=N.L405.name, n=n, gbs=n, zero=3)))
    value("weights_bytes", rank(q, 0, "parameters"))
    value("activations_bytes", activations(q))


def sharded(zero, n, **keys):
    tail = "".join(f"_{k}" if x is True else f"_{x}" for k, x in keys.items() if k != "gbs")
    return plan(f"z{zero}_n{n}{tail}", "devices", n=n, gbs=keys.pop("gbs", n), zero=zero, **keys)


def fully_sharded(n, **keys):
    return plan(f"fsdp_n{n}" + "".join(f"_{k}" for k in keys), "devices", n=n, gbs=n, shard="all", **keys)


def zero_stages():
    for z in (1, 2, 3):
        for n in (1, 8, 16, 32, 64): value(f"zero{z}_n{n}_bytes", state(sharded(z, n)))
    value("zero1_floor_bytes", f"{rank('z1_n8', 0, 'parameters')} + {rank('z1_n8', 0, 'gradients')}")
    value("zero2_floor_bytes", rank("z2_n8", 0, "parameters"))
    value("zero3_least_n", f"ceil({state('z3_n1')} / {capacity('z3_n1')})")
    for n in (1, 64): value("activations_bytes", activations(f"z3_n{n}"))


def zero_wire():
    value("weights_bytes", rank(sharded(0, 32), 0, "parameters"))
    for n in (8, 32):
        for z in (0, 1, 2): value(f"dp_n{n}_bytes", sent(sharded(z, n), "data"))
        value(f"zero3_n{n}_bytes", sent(sharded(3, n), "data"))
    value("zero3_over_dp", f"{sent('z3_n32', 'data')} / {sent('z0_n32', 'data')}")
    for what, zeros in (("dp", (0, 1, 2)), ("zero3", (3,))):
        for net, keys in (("rail", {}), ("flat", {"network": "flat"})):
            for z in zeros: value(f"{what}_{net}_seconds", sent(sharded(z, 32, **keys), "data", "seconds"))
    value("dp_rail_seconds", "z1_n32:time.exposed.data_seconds")
    value("dp_flat_seconds", "z1_n32_flat:time.exposed.data_seconds")
    value("zero3_flat_seconds", "z3_n32_flat:time.exposed.data_seconds + z3_n32_flat:time.hidden.data_seconds")
    value("zero3_flat_seconds", step("z3_n32_flat"))                     # longer than the compute: it is the step
    again = sharded(3, 32, recompute=True)
    value("compute_seconds", compute("z3_n32"))
    value("compute_seconds", step("z3_n32"))                             # everything hides
    value("compute_recompute_seconds", compute(again))
    value("hiding_bytes_per_second", f"{sent('z3_n32', 'data')} / {compute('z3_n32')}")
    value("hiding_recompute_bytes_per_second", f"{sent(again, 'data')} / {compute(again)}")
    value("zero3_n32_bytes", sent(fully_sharded(32), "data"))
    value("zero3_rail_seconds", sent(fully_sharded(32), "data", "seconds"))
    value("compute_seconds", step(fully_sharded(32)))                    # hides as ZeRO-3 does
    for tail, on in (("", False), ("_recompute", True)):
        kept = course_plan("tp4_fsdp8_kept" + tail, 4, 1, 8, 0, on, shard="all", kept=True)
        value(f"tp4_fsdp8_whole{tail}_bytes", peak(kept))
    fsdp, again = course_plan("tp4_fsdp8", 4, 1, 8, 3), course_plan("tp4_fsdp8_recompute", 4, 1, 8, 3, True)
    value("tp4_fsdp8_traffic_seconds", sent(fsdp, "data", "seconds"))
    z1, z2 = course_plan("tp4_dp8_zero1", 4, 1, 8, 1), course_plan("tp4_dp8_zero2", 4, 1, 8, 2)
    gradients = f"({rank(z1, 0, 'gradients')} - {rank(fsdp, 0, 'gradients')})"
    weights = f"({rank(z2, 0, 'parameters')} - {rank(fsdp, 0, 'parameters')})"
    for whole in (gradients, weights):
        value("tp4_fsdp8_whole_extra_bytes", whole)
        value("tp4_fsdp8_whole_bytes", f"{peak(fsdp)} + {whole}")
        value("tp4_fsdp8_whole_recompute_bytes", f"{peak(again)} + {whole}")


def fsdp_32():
    q = sharded(3, 32)
    for x in (q, fully_sharded(32)):
        value("state_bytes", state(x))
        value("sum_bytes", rank(x, 0))
    value("over_bytes", f"-{q}:memory.headroom_bytes")
    for n in (64, 128): value(f"sum_n{n}_bytes", rank(sharded(3, n), 0))
    value("sum_n_infinite_bytes", activations(sharded(3, 128)))
    value("longest_s", f"floor(({capacity(q)} - {state(q)}) / ({activations(q)} / {q}:plan.sequence_length))")
    first = NUMBERS[STEP]["longest_s"] // 16 * 16
    family("longest_s", STEP, "devices", [member(s, n=32, gbs=32, zero=3, s=s) for s in range(first, first + 16)])
    value("longest_s", "max(longest_s:[memory.fits=true].label)")


def activation_checkpointing():
    q, on = sharded(3, 32), sharded(3, 32, recompute=True)
    two = sharded(3, 32, recompute=True, segment=2)
    working = f"({activations(q)} / {q}:model.layers)"
    # Segments of k layers keep L/k inputs and replay k layers: two equations for the input and for the layer.
    value("working_layer_bytes", working)
    value("kept_bytes", f"{activations(on)} - {working}")
    value("kept_layer_bytes", f"({activations(on)} - {working}) / {on}:model.layers")
    value("kept_layer_bytes", f"({activations(on)} + {working} - {activations(two)}) / ({on}:model.layers / 2)")
    value("activations_bytes", activations(on))
    value("activations_ratio", f"{activations(q)} / {activations(on)}")
    value("saved_bytes", f"{activations(q)} - {activations(on)}")
    value("saved_fraction", f"1 - {activations(on)} / {activations(q)}")
    value("total_bytes", rank(on, 0))
    value("total_bytes", rank(fully_sharded(32, recompute=True), 0))
    value("headroom_bytes", f"{on}:memory.headroom_bytes")
    value("headroom_fraction", headroom(on))
    value("compute_ratio", f"{compute(on)} / {compute(q)}")
    value("compute_seconds", compute(q))
    value("compute_recompute_seconds", compute(on))
    family("largest_b", STEP, "devices",
           [member(b, n=32, b=b, gbs=32 * b, zero=3, recompute=True) for b in range(1, 13)])
    value("largest_b", "max(largest_b:[memory.fits=true].label)")
    for k in (1, 2, 4, 5, 8):
        value(f"segment{k}_bytes", activations(sharded(3, 32, recompute=True, **({"segment": k} if k > 1 else {}))))


def drill_zero3_state():
    for short, n in (("70b", 64), ("70b", 32), ("70b", 8)): value(f"{short}_n{n}_bytes", state(sharded(3, n)))
    for model, short, n in ((N.L8, "8b", 8), (N.L405, "405b", 96), (N.L405, "405b", 128)):
        value(f"{short}_n{n}_bytes", state(plan(f"z3_n{n}_{short}", "devices", model=model.name, n=n, gbs=n, zero=3)))
    small = plan("one_40_gb", "devices", memory="40 GB")
    value("least_n_40_gb", f"ceil({state(small)} / {capacity(small)})")


def tp_split():
    again = plan("t8_recompute", "devices", n=8, t=8, recompute=True)
    piped = plan("piped_70b", "devices", model=N.L70.name, n=4, p=4)
    value("tensor_bytes", call(piped, "pipeline"))
    value("tensor_bytes", call(plan("t2", "devices", n=2, t=2), "tensor"))        # 2(n-1)/n is 1 for a pair
    value("all_reduces", "sum(t8:communication[axis=tensor,collective=all-reduce].count)")
    value("all_reduces_recompute", f"sum({again}:communication[axis=tensor,collective=all-reduce].count)")
    for t in (2, 4, 8, 16, 32):
        q, sp = plan(f"t{t}", "devices", n=t, t=t), plan(f"t{t}_sp", "devices", n=t, t=t, sp=True)
        flat = plan(f"t{t}_flat", "devices", n=t, t=t, network="flat")
        value(f"t{t}_state_bytes", state(q))
        for label, x in (("no_sp", q), ("sp", sp)):
            value(f"t{t}_activations_{label}_bytes", activations(x))
            value(f"t{t}_sum_{label}_bytes", rank(x, 0))
        value(f"t{t}_all_reduce_bytes", call(q, "tensor"))
        value(f"t{t}_all_reduce_bytes", f"{sent(sp, 'tensor')} / {sent(q, 'tensor', 'count')}")   # the same bytes
        for net, x in (("rail", q), ("flat", flat)):
            value(f"t{t}_all_reduce_{net}_seconds", f"{sent(x, 'tensor', 'seconds')} / {sent(x, 'tensor', 'count')}")
            value(f"t{t}_320_{net}_seconds", sent(x, "tensor", "seconds"))
            value(f"t{t}_320_{net}_seconds", f"{x}:time.exposed.tensor_seconds")
        value(f"t{t}_compute_seconds", compute(q))
    tp = lambda name, **keys: plan(f"t8_dp4_{name}", "devices", n=32, t=8, gbs=4, **keys)
    value("t8_dp4_zero1_state_bytes", state(tp("zero1", zero=1)))
    value("t8_dp4_zero2_state_bytes", state(tp("zero2", zero=2)))
    value("t8_dp4_zero1_no_sp_bytes", peak("t8_dp4_zero1"))
    value("t8_dp4_zero1_no_sp_recompute_bytes", peak(tp("zero1_recompute", zero=1, recompute=True)))
    value("t8_dp4_zero1_sp_bytes", peak(tp("zero1_sp", zero=1, sp=True)))
    value("t8_dp4_zero1_sp_recompute_bytes", peak(tp("zero1_sp_recompute", zero=1, sp=True, recompute=True)))
    value("t8_dp4_zero1_sp_headroom_fraction", headroom("t8_dp4_zero1_sp"))


def break_tp_across_servers():
    for t in (4, 8, 16, 32):
        # The calls, and with them the latencies, are those of all-reduces: sequence parallelism on for the memory alone.
        make = lambda name, **keys: plan(f"break_t{t}_{name}", "pod", t=t, zero=1, overlap="ignore", **keys)
        sp, rail = make("sp", sp=True), make("rail")
        flat, late = make("flat", network="flat"), make("rail_latency", network="rail-latency")
        seconds = lambda q: sent(q, "tensor", "seconds")
        value("compute_seconds", compute(rail))
        value(f"t{t}_sequences", f"{rail}:plan.micro_batches * {rail}:plan.micro_batch_size")
        for q in (rail, sp): value(f"t{t}_bytes", sent(q, "tensor"))
        for q in (rail, sp): value(f"t{t}_rail_seconds", f"{q}:time.exposed.tensor_seconds")
        value(f"t{t}_rail_over_compute_fraction", f"{seconds(rail)} / {compute(rail)}")
        value(f"t{t}_flat_seconds", f"{flat}:time.exposed.tensor_seconds")
        value(f"t{t}_latency_seconds", f"{seconds(late)} - {seconds(rail)}")
        value(f"t{t}_rail_latency_bytes_per_second", f"{sent(late, 'tensor')} / {seconds(late)}")
        for net, q in (("rail", rail), ("rail", sp), ("rail_latency", late), ("flat", flat)):
            value(f"t{t}_step_{net}_seconds", step(q))
            value(f"t{t}_mfu_{net}_fraction", mfu(q))
        value(f"t{t}_memory_bytes", peak(sp))
        value(f"t{t}_headroom_fraction", headroom(sp))
    for net in ("rail", "rail_latency", "flat"):
        value(f"slowdown_{net}", f"{step(f'break_t32_{net}')} / {step(f'break_t8_{net}')}")
    value("bytes_ratio_t32_t8", f"{sent('break_t32_rail', 'tensor')} / {sent('break_t8_rail', 'tensor')}")


def tp_inside_nvlink():
    q, sp = course_plan("chosen_no_sp", 8, 2, 2, 1, sp=None), course_plan("chosen", 8, 2, 2, 1)
    value("micro_batches", f"{q}:plan.micro_batches")
    parts = {"tp": sent(q, "tensor"), "pp": sent(q, "pipeline"), "pp_sliced": sent(sp, "pipeline"), "dp": sent(q, "data")}
    for what, expression in parts.items():
        value(what + "_bytes", expression)
        value(what + "_nvlink_seconds", f"{expression} / {link(q, NVLINK)}")
        value(what + "_port_seconds", f"{expression} / {link(q, PORT)}")
        value(what + "_port_over_compute", f"{expression} / {link(q, PORT)} / {compute(q)}")
    value("tp_bytes", sent(sp, "tensor"))
    value("tp_nvlink_seconds", sent(q, "tensor", "seconds"))
    value("dp_port_seconds", sent(q, "data", "seconds"))                 # its groups do have one rank per server
    value("tp_over_dp", f"{parts['tp']} / {parts['dp']}")
    value("tp_over_pp", f"{parts['tp']} / {parts['pp']}")
    value("compute_seconds", compute(q))
    for t in (2, 4, 8):
        value(f"h100_t{t}_seconds", f"{plan(f'break_t{t}_rail', 'pod', t=t, zero=1, overlap='ignore')}:time.exposed.tensor_seconds")


def pp_split():
    step_11 = {"n": 32, "t": 8, "p": 4, "gbs": 8}
    q, again = plan("pp4", "devices", **step_11), plan("pp4_recompute", "devices", **step_11, recompute=True)
    hidden = plan("pp4_hidden", "devices", **step_11, hidden=1.0)        # compute only
    hidden_again = plan("pp4_hidden_recompute", "devices", **step_11, recompute=True, hidden=1.0)
    for i, label in ((0, "first"), (1, "middle"), (3, "last")):
        value(label + "_parameters", f"{rank(q, i, 'parameters')} / 2")
        value(label + "_state_bytes", state(q, i))
    value("middle_state_bytes", state(q, 2))
    slot = lambda x: f"({compute(x)} / {x}:plan.micro_batches)"
    value("layers_per_rank", f"{q}:plan.layers[2]")
    value("slots_m8", f"{step(hidden)} / {slot(hidden)}")
    value("slot_seconds", slot(q))
    value("slot_recompute_seconds", slot(again))
    value("m8_seconds", step(hidden))
    value("m8_recompute_seconds", step(hidden_again))
    for label, x in (("tp", q), ("tp_recompute", again)):
        value(label + "_bytes", f"{sent(x, 'tensor')} / {x}:plan.micro_batches")
        value(label + "_seconds", f"{sent(x, 'tensor', 'seconds')} / {x}:plan.micro_batches")
        value(label + "_seconds", f"({step(x)} - {step({'tp': hidden, 'tp_recompute': hidden_again}[label])}) / ({x}:plan.micro_batches + {x}:plan.pipeline - 1)")
    value("pp_end_bytes", f"{sent(q, 'pipeline')} / {q}:plan.micro_batches")
    # The traffic shown is that of the rank with the most memory: give that to a middle rank.
    middle = plan("pp4_middle", "devices", **step_11 | {"gbs": 1}, split="[18, 22, 22, 18]")
    value("pp_middle_bytes", f"{sent(middle, 'pipeline')} / {middle}:plan.micro_batches")
    value("boundary_seconds", f"{call(q, 'pipeline')} / {link(q, PORT)}")
    sliced = plan("pp4_sp", "devices", **step_11, sp=True)
    value("boundary_sliced_seconds", f"{call(sliced, 'pipeline')} / {link(sliced, PORT)}")
    for p in (2, 4, 8, 16):
        for m in (1, 2, 4, 8, 16, 32, 64, 128):
            value(f"bubble_p{p}_m{m}_fraction", f"{plan(f'p{p}_m{m}', 'devices', n=32, t=32 // p, p=p, gbs=m)}:time.bubble_fraction")
    value("p16_t2_end_state_bytes", state("p16_m16", 15))
    without("an interleaved pipeline: its figures are in the course's folder alone",
            *(k for k in NUMBERS[STEP] if k.startswith("interleaved")))


def shrink_bubble():
    make = lambda name, b, **keys: plan(f"shrink_b{b}_{name}", "devices", n=32, t=8, p=4, gbs=32, b=b, **keys)
    for b in (8, 4, 2, 1):
        q, curve = make("hidden", b, hidden=1.0), make("curve", b, hidden=1.0, half=512)   # compute only
        value(f"b{b}_m", f"{q}:plan.micro_batches")
        value(f"b{b}_bubble_fraction", f"{make('no_sp', b)}:time.bubble_fraction")
        value(f"b{b}_no_sp_bytes", rank(f"shrink_b{b}_no_sp", 0))
        value(f"b{b}_sp_bytes", rank(make("sp", b, sp=True), 0))
        value(f"b{b}_recompute_bytes", rank(make("recompute", b, recompute=True), 0))
        value(f"b{b}_efficiency_fraction", f"{compute(q)} / {compute(curve)}")
        value(f"b{b}_relative_time", f"{step(curve)} / {compute(q)}")
        value("no_bubble_seconds", compute(q))
    value("m16_to_m32_saves_fraction", f"1 - {step('shrink_b1_curve')} / {step('shrink_b2_curve')}")
    value("m16_to_m32_saves_without_curve_fraction", f"1 - {step('shrink_b1_hidden')} / {step('shrink_b2_hidden')}")
    value("largest_m", "shrink_b1_hidden:plan.micro_batches")


def break_recompute_off():
    make = lambda name, b=2, **keys: plan(f"recompute_{name}", "devices", n=32, t=8, p=4, gbs=32, b=b, **keys)
    off, on = make("off"), make("on", recompute=True)
    for i in range(4):
        value(f"off_rank{i}_bytes", rank(off, i))
        value(f"on_rank{i}_bytes", rank(on, i))
    value("off_mean_bytes", f"sum({off}:memory.ranks.total_bytes) / count({off}:memory.ranks.total_bytes)")
    value("rank0_over_bytes", f"-{off}:memory.headroom_bytes")
    value("rank1_over_bytes", f"{rank(off, 1)} - {capacity(off)}")
    flight = lambda q, i: f"{q}:memory.ranks[{i}].in_flight_micro_batches"
    value("in_flight_bytes", f"{activations(off, 0)} / {flight(off, 0)}")
    value("in_flight_recompute_bytes",
          f"({activations(on, 0)} - {activations(on, 3)}) / ({flight(on, 0)} - {flight(on, 3)})")
    value("repair_sp_bytes", peak(make("off_sp", sp=True)))
    value("repair_b1_bytes", peak(make("off_b1", 1)))
    value("repair_b1_headroom_fraction", headroom("recompute_off_b1"))
    value("gpipe_m16_bytes", rank(make("off_gpipe", schedule="pipeline-gpipe"), 0))
    value("rank0_micro_batches", flight(off, 0))


def drill_bubble():
    bubble = lambda p, m: f"{plan(f'drill_p{p}_m{m}', 'devices', n=8 * p, t=8, p=p, gbs=m)}:time.bubble_fraction"
    for p, m in ((8, 32), (4, 8), (4, 16), (8, 56), (2, 64)): value(f"p{p}_m{m}_fraction", bubble(p, m))
    for p in (4, 8):
        family(f"bubble_p{p}", STEP, "devices", [member(m, n=8 * p, t=8, p=p, gbs=m) for m in range(1, 81)])
    for p, percent in ((4, 10), (4, 5), (8, 10)):
        value(f"least_m_p{p}_{percent}_percent", f"min(bubble_p{p}:[time.bubble_fraction<={percent / 100}].label)")


def expert_parallel():
    make = lambda name, model, **keys: plan(f"moe_{model}_{name}", model, **keys)
    for n in ("8x7b", "8x22b"):
        one, ep8 = make("one", n), make("ep8", n, n=8, e=8, gbs=8)
        value(n + "_parameters", f"{one}:model.parameters")
        value(n + "_active_parameters", f"{one}:model.active_parameters")
        value(n + "_active_fraction", f"{one}:model.active_parameters / {one}:model.parameters")
        experts = f"(({rank(one, 0, 'parameters')} - {rank(ep8, 0, 'parameters')}) / 2 * 8 / 7)"
        value(n + "_experts_parameters", experts)
        value(n + "_rest_parameters", f"{one}:model.parameters - {experts}")
        value(n + "_state_bytes", state(one))
        value(n + "_state_n32_bytes", state(make("z3", n, n=32, gbs=32, zero=3)))
        value(n + "_state_n32_bytes", state(make("fsdp", n, n=32, gbs=32, shard="all")))
        value(n + "_zero1_bytes", state(make("z1", n, n=32, gbs=32, zero=1)))
        value(n + "_ep8_bytes", state(ep8))
        value(n + "_ep8_zero1_bytes", state(make("ep8_z1", n, n=32, e=8, gbs=32, zero=1)))
    one, ep8, q = "moe_8x7b_one", "moe_8x7b_ep8", "moe_8x7b_ep8_z1"
    again, ep8_again = (make(name, "8x7b", e=8, recompute=True, **keys) for name, keys in
                        (("ep8_z1_again", {"n": 32, "gbs": 32, "zero": 1}), ("ep8_again", {"n": 8, "gbs": 8})))
    sbh = f"({call(make('piped', '8x7b', n=4, p=4), 'pipeline')} / 2)"
    value("activation_units", f"{activations(one)} / ({one}:model.layers * {sbh})")
    value("activations_bytes", activations(q))
    value("total_bytes", peak(q))
    value("total_headroom_fraction", headroom(q))
    value("total_recompute_bytes", peak(again))
    leaves = call(ep8, "expert")
    value("payload_bytes", f"{leaves} * 8 / 7")
    value("leaves_gpu_bytes", leaves)
    one_call = lambda x: f"({sent(x, 'expert', 'seconds')} / {sent(x, 'expert', 'count')})"
    # Pipeline ranks fastest: two of the eight ranks of a group on each server.
    spread = make("spread", "8x7b", n=32, p=4, e=8, gbs=8, order="tp-cp-pp-ep-dp")
    value("leaves_server_bytes", f"{one_call(spread)} * {link(spread, PORT)}")
    value("nvlink_seconds", one_call(ep8))
    value("port_seconds", one_call(spread))
    value("port_over_nvlink", f"{one_call(spread)} / {one_call(ep8)}")
    layer = f"({compute(one)} - {compute(make('one_less', '8x7b', layers=31))})"
    value("layer_compute_seconds", layer)
    exposed = lambda x: f"({x}:time.exposed.expert_seconds / {x}:model.layers)"
    value("nvlink_layer_seconds", exposed(ep8))
    value("nvlink_layer_recompute_seconds", exposed(ep8_again))
    value("nvlink_over_compute_fraction", f"{exposed(ep8)} / {layer}")
    value("port_over_compute_fraction", f"4 * {one_call(spread)} / {layer}")
    value("all_to_alls", sent(ep8, "expert", "count"))
    value("all_to_alls_recompute", sent(ep8_again, "expert", "count"))
    value("sequence_bytes", sent(ep8, "expert"))
    value("sequence_recompute_bytes", sent(ep8_again, "expert"))
    dense = plan("one_70b", "devices", model=N.L70.name)
    value("8x22b_memory_over_70b", f"{state('moe_8x22b_one')} / {state(dense)}")
    value("8x22b_compute_over_70b", f"moe_8x22b_one:model.active_parameters / {dense}:model.active_parameters")


def plan_3d_70b():
    # The whole sets first: each plan's memory, step and MFU, and how many pass.
    refused = [member(f"tp{t}_pp{p}", False, t=t, p=p) for t in (1, 2, 4, 8) for p in (1, 2, 4, 5, 8, 10, 16)
               if N.WORLD % (t * p)]
    sets = {"seventy": N.plans(), "beyond_server": N.plans(tensors=(16, 32)),
            "zero3_pipelined": [q for q in N.plans(zeros=(3,), zero3_with_pipeline=True) if q.p > 1],
            "zero2": N.plans(zeros=(2,)), "zero2_once": N.plans(zeros=(2,), zero2_once=True)}
    for key, qs in sets.items():
        plan_family(key, STEP, qs, refused=refused if key == "seventy" else (), once=key == "zero2_once")
    count = lambda key: f"count({key}:[legal=true].label)"
    passing = lambda key: f"count({key}:[{PASSES},time.step_seconds<=17.5].label)"
    for name, keys in (("", ("seventy",)), ("_t32", ("seventy", "beyond_server")),
                       ("_zero3_with_pipeline", ("seventy", "zero3_pipelined"))):
        value("plans" + name, " + ".join(map(count, keys)))
        value("passing" + name, " + ".join(map(passing, keys)))
    value("fitting", "count(seventy:[legal=true,memory.fits=true].label)")
    for key in ("zero2", "zero2_once"): value("passing_" + key, passing(key))
    table = {"chosen": (8, 2, 2, 1), "tp8_pp4_dp1": (8, 4, 1), "tp8_pp1_dp4_zero1": (8, 1, 4, 1),
             "tp4_pp4_dp2_zero1": (4, 4, 2, 1), "tp4_pp8_dp1": (4, 8, 1), "tp4_fsdp8": (4, 1, 8, 3),
             "fsdp32_recompute": (1, 1, 32, 3, True), "chosen_recompute": (8, 2, 2, 1, True),
             "tp4_pp2_dp4_zero1": (4, 2, 4, 1), "tp2_fsdp16": (2, 1, 16, 3), "chosen_no_zero": (8, 2, 2, 0)}
    for name, degrees in table.items():
        q = course_plan(name, *degrees)
        report(name, q)
        value(name + "_headroom_bytes", f"{q}:memory.headroom_bytes")
        value(name + "_bubble_fraction", f"{q}:time.bubble_fraction")
    value("tp4_fsdp8_traffic_seconds", sent("tp4_fsdp8", "data", "seconds"))
    value("fsdp32_traffic_seconds", sent("fsdp32_recompute", "data", "seconds"))
    value("chosen_rank0_parameters", f"{rank('chosen', 0, 'parameters')} / 2")
    for what, key in (("weights", "parameters"), ("gradients", "gradients"), ("optimizer", "optimizer"),
                      ("activations", "activations")):
        value(f"chosen_{what}_bytes", rank("chosen", 0, key))
    value("chosen_state_bytes", state("chosen"))
    value("chosen_rank1_bytes", rank("chosen", 1))
    no_sp = course_plan("chosen_no_sp", 8, 2, 2, 1, sp=None)
    value("chosen_no_sp_bytes", rank(no_sp, 0))
    value("chosen_no_sp_headroom_fraction", headroom(no_sp))
    value("chosen_fp32_gradients_bytes", peak(course_plan("chosen_fp32", 8, 2, 2, 1, scenario="pod_precision", grad="fp32")))
    value("chosen_tp_bytes", sent("chosen", "tensor"))
    rival = "tp4_pp4_dp2_zero1"
    value("tp4_pp4_dp2_faster_fraction", f"1 - {step(rival)} / {step('chosen')}")
    value("tp4_fsdp8_faster_fraction", f"1 - {step('tp4_fsdp8')} / {step('chosen')}")
    a, b = (course_plan(f"{name}_tp_hidden", *table[name], hidden=1.0) for name in ("chosen", rival))
    value("chosen_tp_hidden_step_seconds", step(a))
    value("tp4_pp4_dp2_tp_hidden_step_seconds", step(b))
    gain = f"({step('chosen')} - {step(rival)})"
    value("tp_hidden_break_even_fraction", f"{gain} / ({gain} + {step(b)} - {step(a)})")
    value("tp4_pp2_dp4_zero3_step_seconds", step(course_plan("tp4_pp2_dp4_zero3", 4, 2, 4, 3)))
    z2, once = course_plan("tp8_dp4_zero2", 8, 1, 4, 2), course_plan("tp8_dp4_zero2_once", 8, 1, 4, 2, reduce="step")
    value("tp8_dp4_zero2_bytes", peak(z2))
    value("tp8_dp4_zero2_step_seconds", step(z2))
    value("tp8_dp4_zero2_once_step_seconds", step(once))
    value("tp4_pp4_dp2_zero2_bytes", peak(course_plan("tp4_pp4_dp2_zero2", 4, 4, 2, 2)))


def megatron_flags():
    for t, p in ((8, 2), (8, 4), (4, 2)):
        q = plan(f"flags_tp{t}_pp{p}", "pod", t=t, p=p)                  # nobody states the data-parallel degree
        value(f"tp{t}_pp{p}_cp1_dp", f"{q}:plan.data")
        value(f"tp{t}_pp{p}_cp1_micro_batches", f"{q}:plan.micro_batches")
    value("bubble_fraction", "flags_tp8_pp2:time.bubble_fraction")
    q = course_plan("chosen_fp32", 8, 2, 2, 1, scenario="pod_precision", grad="fp32")
    value("fp32_gradients_bytes", peak(q))
    value("fp32_gradients_headroom_fraction", headroom(q))
    check = plan("flags_check", "pod", t=4, p=2, gbs=256, b=2)
    value("check_dp", f"{check}:plan.data")
    value("check_micro_batches", f"{check}:plan.micro_batches")
    q = plan("flags_tp4_pp4_cp2", "pod", t=4, p=4, c=2)
    value("tp4_pp4_cp2_dp", f"{q}:plan.data")
    value("tp4_pp4_cp2_micro_batches", f"{q}:plan.micro_batches")
    without("a plan says how groups lie over servers, not which ranks they are",
            "tp_group", "dp_group_0", "dp_group_1", "pp_group")


def deepspeed_config():
    config = [plan(f"deepspeed_z{z}", "pod", zero=z) for z in range(4)]
    for z in range(4): value(f"zero{z}_bytes", state(config[z]))
    value("accumulation_steps", f"{config[1]}:plan.micro_batches")
    value("check_accumulation_steps", f"{plan('deepspeed_check', 'pod', zero=1, gbs=256, b=2)}:plan.micro_batches")
    for z, name in ((0, "zero01"), (1, "zero01"), (2, "zero2"), (3, "zero3")):
        value(name + "_sent_bytes", sent(config[z], "data"))


def fsdp_code():
    # One block is what a model with one layer less lacks.
    make = lambda name, layers, **keys: plan(f"block_{name}_{layers}", "dimensions", layers=layers, **keys)
    L, one = N.L70.L, {"n": 32, "gbs": 32, "zero": 3}
    less = lambda name, f, **keys: f"({f(make(name, L, **keys))} - {f(make(name, L - 1, **keys))})"
    value("block_bytes", less("one", lambda q: rank(q, 0, "parameters")))
    value("shard_bytes", less("rail", lambda q: rank(q, 0, "parameters"), **one))
    value("gather_bytes", f"{less('rail', lambda q: sent(q, 'data'), **one)} / 3")     # two gathers, one reduction
    forward = less("rail", lambda q: f"{q}:time.forward_seconds", **one)
    for net, keys in (("rail", one), ("flat", one | {"network": "flat"})):
        gather = f"({less(net, lambda q: sent(q, 'data', 'seconds'), **keys)} / 3)"
        value(f"gather_{net}_seconds", gather)
        value(f"hiding_{net}_tokens", f"{gather} / ({forward} / block_rail_{L}:plan.sequence_length)")
    value("forward_seconds", forward)
    value("backward_seconds", less("rail", lambda q: f"{q}:time.backward_seconds", **one))
    value("backward_recompute_seconds",
          less("recompute", lambda q: f"({q}:time.backward_seconds + {q}:time.recompute_seconds)", **one, recompute=True))
    value("sent_bytes", sent(sharded(3, 32), "data"))
    wide = plan("z3_n32_fp32_reduce", "pod_precision", gbs=32, zero=3, grad="fp32", wire="fp32")
    value("sent_fp32_reduce_bytes", sent(wide, "data"))


def drill_megatron_tp():
    value("dp", f"{plan('flags_tp8_pp2', 'pod', t=8, p=2)}:plan.data")


def playground_replan():
    start, chosen = course_plan("fsdp32_recompute", 1, 1, 32, 3, True), course_plan("chosen", 8, 2, 2, 1)
    value("start_step_seconds", step(start))
    value("start_mfu_fraction", mfu(start))
    value("chosen_step_seconds", step(chosen))
    value("goal_step_seconds", f"{step(chosen)} * {mfu(chosen)} / 0.40")
    value("mfu_at_17_5_seconds_fraction", f"{step(chosen)} * {mfu(chosen)} / 17.5")
    value("tokens_per_day_at_goal", f"{chosen}:throughput.tokens_per_second / {mfu(chosen)} * 0.40 * 86400")
    value("gain_seconds", f"{step(start)} - {step(chosen)}")
    # A server is lost.
    left = {"scenario": "pod", "pod": 24}
    for d in (3, 6, 12, 24):
        family(f"batches_dp{d}", STEP, "pod",
               [member(g, g % d == 0, nodes=3, t=24 // d, sp=True if d < 24 else None, d=d, gbs=g) for g in range(116, 146)])
        found = f"batches_dp{d}:[legal=true,label"
        value(f"dp{d}_batches", [f"max({found}<={N.GBS}].label)", f"min({found}>={N.GBS}].label)"])
    degrees = (1, 2, 3, 4, 6, 8, 12, 24)
    shapes = [(t, p, 24 // (t * p)) for t in degrees for p in degrees if 24 % (t * p) == 0]
    legal = [tuple(x) for x in NUMBERS[STEP]["legal_24"]]
    family("lost_server", STEP, "pod",
           [member([t, p, d], (t, p, d) in legal, nodes=3, t=t, p=p, gbs=-(-N.GBS // d) * d) for t, p, d in shapes])
    value("legal_24", "lost_server:[legal=true].label")
    fsdp24 = course_plan("fsdp24_recompute", 1, 1, 24, 3, True, gbs=120, **left)
    value("tp8_dp3_zero1_bytes", peak(course_plan("tp8_dp3_zero1", 8, 1, 3, 1, gbs=126, **left)))
    value("tp8_dp3_zero1_recompute_bytes", peak(course_plan("tp8_dp3_zero1_recompute", 8, 1, 3, 1, True, gbs=126, **left)))
    report("tp8_fsdp3", course_plan("tp8_fsdp3", 8, 1, 3, 3, gbs=129, **left))
    value("compute_24_seconds",
          f"{compute('tp8_fsdp3')} / tp8_fsdp3:plan.global_batch_size * {chosen}:plan.global_batch_size")
    report("fsdp24_recompute", fsdp24)
    report("fsdp24_recompute", course_plan("fsdp24_plugin", 1, 1, 24, 0, True, gbs=120, shard="all", **left))
    near = lambda d: [N.GBS // d * d, -(-N.GBS // d) * d]
    plan_family("left", STEP, N.plans(24, zeros=(0, 1, 2, 3), zero3_with_pipeline=True, batches=near), pod=24)
    value("best_24_mfu_fraction", f"max(left:[{PASSES}].throughput.mfu)")
    # Sequences of 8192 tokens.
    long = {"s": 8192}
    report("s8192_chosen", course_plan("s8192_chosen", 8, 2, 2, 1, **long))
    value("compute_s8192_seconds", compute("s8192_chosen"))
    report("s8192_fsdp32_recompute", course_plan("s8192_fsdp32_recompute", 1, 1, 32, 3, True, **long))
    report("s8192_best", course_plan("s8192_tp8_fsdp4", 8, 1, 4, 3, **long))
    plan_family("seventy_s8192", STEP, N.plans(s=8192))
    value("s8192_best_mfu_fraction", f"max(seventy_s8192:[{PASSES}].throughput.mfu)")
    report("s8192_tp8_pp4", course_plan("s8192_tp8_pp4", 8, 4, 1, **long))
    # Gradients in fp32, first in memory alone.
    fp32 = {"scenario": "pod_precision", "grad": "fp32"}
    report("fp32_chosen", course_plan("chosen_fp32", 8, 2, 2, 1, **fp32))
    report("fp32_tp8_pp4", course_plan("fp32_tp8_pp4", 8, 4, 1, **fp32))
    report("fp32_tp4_fsdp8", course_plan("fp32_tp4_fsdp8", 4, 1, 8, 3, **fp32))
    value("fp32_wire_tp4_fsdp8_step_seconds", step(course_plan("fp32_wire_tp4_fsdp8", 4, 1, 8, 3, wire="fp32", **fp32)))
    report("fp32_s8192_chosen", course_plan("fp32_s8192_chosen", 8, 2, 2, 1, **long, **fp32))


STEPS = [conventions, one_gpu_70b, floor_405b, zero_stages, zero_wire, fsdp_32, activation_checkpointing, drill_zero3_state,
         tp_split, break_tp_across_servers, tp_inside_nvlink, pp_split, shrink_bubble, break_recompute_off, drill_bubble,
         expert_parallel, plan_3d_70b, megatron_flags, deepspeed_config, fsdp_code, drill_megatron_tp, playground_replan]


def lines(table, brackets):
    items = [f"{json.dumps(k)}: {json.dumps(v)}" for k, v in table.items()] if isinstance(table, dict) else map(json.dumps, table)
    return brackets[0] + "\n" + ",\n".join(items) + "\n" + brackets[1]


def main():
    global STEP
    for fill in STEPS:
        STEP = fill.__name__.replace("_", "-")
        fill()
        used = {v["name"] for v in values if v["step"] == STEP}
        missing = set(NUMBERS[STEP]) - used - {v["name"] for v in left_out if v["step"] == STEP}
        assert not missing, (STEP, missing)
        print(f"{STEP}: {len(used)} values, {len(NUMBERS[STEP]) - len(used)} left out", file=sys.stderr)
    beyond = [{"step": slug, "name": name, "expected": ALL[slug][name]}
              for slug in ALL for name in N.BEYOND[slug] if name != "minutes"]
    whole = {"scenarios": lines(scenarios, "{}"), "plans": lines(plans, "{}"),
             "families": "{\n" + ",\n".join(
                 f'{json.dumps(k)}: {{"step": {json.dumps(v["step"])}, "scenario": {json.dumps(v["scenario"])}, "members": '
                 + lines(v["members"], "[]") + "}" for k, v in families.items()) + "\n}",
             "values": lines(values, "[]"), "left_out": lines(left_out, "[]"), "beyond": lines(beyond, "[]")}
    print("{\n" + ",\n".join(f"{json.dumps(k)}: {v}" for k, v in whole.items()) + "\n}")


main()
