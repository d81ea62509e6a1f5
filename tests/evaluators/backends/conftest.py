import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

import pytest
from PIL import Image

from evaluators.backends.base import Prompt, Request

MESSAGES = (
    "{% for message in messages %}{{ message['role'] }}: CONTENT</s>\n{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)
PARTS = (
    "{% if message['content'] is string %}{{ message['content'] }}{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}<image>"
    "{% else %}{{ part['text'] }}{% endif %}{% endfor %}{% endif %}"
)


@pytest.fixture(scope="session")
def png():
    """Makes a picture of one colour as PNG bytes."""

    def make(size=(40, 40), colour="red", mode="RGB", **saved):
        buffer = BytesIO()
        Image.new(mode, size, colour).save(buffer, saved.pop("format", "PNG"), **saved)
        return buffer.getvalue()

    return make


@pytest.fixture(scope="session")
def ask():
    """Makes a request."""

    def make(name, parts=("2 + 2 = ?",), *, decode="greedy", samples=(0,), seeds=None, system=None):
        chosen = tuple(seeds or (1000 + sample for sample in samples))
        return Request(name, Prompt(tuple(parts), system), decode, tuple(samples), chosen)

    return make


@pytest.fixture(scope="session")
def tokenizer():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    special = ["<pad>", "<s>", "</s>", "<image>", "<fake_token_around_image>", "<global-img>"]
    special.append("<end_of_utterance>")
    raw = Tokenizer(models.BPE())
    raw.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    raw.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    raw.train_from_iterator(["Answer: [0, 1, 2]"], trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        additional_special_tokens=special[3:],
    )


@pytest.fixture(scope="session")
def text_shape(tokenizer):
    return {
        "hidden_size": 64,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "max_position_embeddings": 2048,
        "initializer_range": 0.2,
    }


@pytest.fixture(scope="session")
def tiny_vlm(tokenizer, text_shape, tmp_path_factory):
    """A random Idefics3 that takes pictures."""
    import torch
    from transformers import (
        Idefics3Config,
        Idefics3ForConditionalGeneration,
        Idefics3ImageProcessorPil,
        Idefics3Processor,
    )

    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models") / "tiny-vlm"
    pictures = Idefics3ImageProcessorPil(
        size={"longest_edge": 64}, max_image_size={"longest_edge": 64}, do_image_splitting=False
    )
    template = MESSAGES.replace("CONTENT", PARTS)
    Idefics3Processor(
        image_processor=pictures, tokenizer=tokenizer, image_seq_len=4, chat_template=template
    ).save_pretrained(folder)
    vision = {
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "image_size": 64,
        "patch_size": 16,
        "initializer_range": 0.2,
    }
    config = Idefics3Config(
        vision_config=vision,
        text_config={"model_type": "llama", **text_shape},
        scale_factor=2,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        pad_token_id=tokenizer.pad_token_id,
    )
    Idefics3ForConditionalGeneration(config).save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_lm(tokenizer, text_shape, tmp_path_factory):
    """A random Llama for text alone, whose own settings would cool and penalise its samples."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(1)
    folder = tmp_path_factory.mktemp("models") / "tiny-lm"
    model = LlamaForCausalLM(LlamaConfig(**text_shape))
    model.generation_config.update(do_sample=True, temperature=0.1, repetition_penalty=1.5, top_k=3)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    template = MESSAGES.replace("CONTENT", "{{ message['content'] }}")
    (folder / "chat_template.jinja").write_text(template)
    return folder


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            self.send(401, {"error": "no"})
            return
        cards = [{"id": name, "root": name, "created": time.time()} for name in self.server.models]
        self.send(200, {"data": cards})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.bodies.append(body)
            self.server.now += 1
            self.server.most = max(self.server.most, self.server.now)
            number = len(self.server.bodies)
        try:
            self.server.answer(self, body, number)
        except BrokenPipeError:
            pass
        finally:
            with self.server.lock:
                self.server.now -= 1

    def send(self, status, data, **headers):
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(headers.pop("length", len(raw))))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)

    def reply(self, content, **message):
        finish = message.pop("finish_reason", "stop")
        stop = message.pop("stop_reason", None)
        choice = {
            "message": {"content": content, **message},
            "finish_reason": finish,
            "stop_reason": stop,
        }
        self.send(200, {"choices": [choice], "usage": {"completion_tokens": 3}})


def echo(handler, body, number):
    text = "".join(part.get("text", "") for part in body["messages"][-1]["content"])
    handler.reply(f"{text} seed {body['seed']}")


@pytest.fixture
def server():
    """Starts servers that answer as they are told to."""
    running = []

    def start(answer=echo, *, models=("tiny",), key=None):
        made = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        made.daemon_threads = True
        made.answer, made.models, made.key = answer, models, key
        made.bodies, made.lock, made.now, made.most = [], threading.Lock(), 0, 0
        made.url = f"http://127.0.0.1:{made.server_port}/v1"
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        running.append((made, thread))
        return made

    yield start
    for made, thread in running:
        made.shutdown()
        thread.join()
        made.server_close()
