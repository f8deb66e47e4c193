// SPDX-License-Identifier: Apache-2.0
/* hangjson.c - prints where processes stand, and who waits for whom, as one line of JSON */
#include "export/answers/hang/hangprint.h"

#include "export/show/plain.h"

static const char *state_word(const struct kp_hang_process *p)
{
    static const char *const words[] = {"told", "silent", "stopped", "gone"};
    return words[p->state];
}

static void frame_put(FILE *out, const struct kp_hang_frame *f)
{
    kp_plain_json_fmt(out, "{\"file\":%s,\"line\":%ld,\"function\":%s}", f->file, f->line, f->function);
}

static void thread_put(FILE *out, const struct kp_hang_thread *t)
{
    kp_plain_json_fmt(out, "{\"tid\":%ld,\"name\":%s,\"call\":%s,\"words\":%s", t->tid, t->name, t->call, t->words);
    fprintf(out, ",\"main\":%s,\"python\":[", t->is_main ? "true" : "false");
    for (size_t i = 0; i < t->frame_count; i++) {
        if (i) fputc(',', out);
        frame_put(out, &t->frames[i]);
    }
    fputs("]}", out);
}

static void process_put(FILE *out, const struct kp_hang_process *p, bool is_accused)
{
    struct kp_hang_spot spot;
    kp_hang_spot(&spot, p);
    if (p->rank >= 0) fprintf(out, "{\"rank\":%ld,", p->rank);
    else fputs("{\"rank\":null,", out);
    kp_plain_json_fmt(out, "\"pid\":%ld,\"host\":%s,\"state\":%s,\"step\":%ld", p->pid, p->host, state_word(p),
                      p->step);
    fprintf(out, ",\"accused\":%s,\"in\":", is_accused ? "true" : "false");
    kp_plain_json(out, spot.within ? spot.within->name : NULL);
    fprintf(out, ",\"since_ms\":%.0f,\"at\":", spot.within ? spot.within->since_ms : 0.0);
    if (spot.frame) frame_put(out, spot.frame);
    else fputs("null", out);
    fputs(",\"threads\":[", out);
    for (size_t i = 0; i < p->thread_count; i++) {
        if (i) fputc(',', out);
        thread_put(out, &p->threads[i]);
    }
    fputs("]}", out);
}

void kp_hang_json(FILE *out, const struct kp_hang *h, const struct kp_hang_verdict *v)
{
    kp_plain_json_fmt(out, "{\"hang\":1,\"verdict\":%s,\"text\":%s,\"processes\":[", kp_hang_kind_word(v->kind),
                      v->text);
    for (size_t i = 0; i < h->count; i++) {
        if (i) fputc(',', out);
        process_put(out, &h->of[i], v->accused[i]);
    }
    fputs("]}\n", out);
}

void kp_hang_schema(FILE *out)
{
    fputs(
        "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\n"
        "\"$defs\":{\"frame\":{\"type\":\"object\",\"required\":[\"file\",\"line\",\"function\"],\"properties\":{"
        "\"file\":{\"type\":\"string\"},\"line\":{\"type\":\"integer\"},\"function\":{\"type\":\"string\"}}},\n"
        "\"thread\":{\"type\":\"object\",\"required\":[\"tid\",\"name\",\"call\",\"words\",\"main\",\"python\"],"
        "\"properties\":{\"tid\":{\"type\":\"integer\"},\"name\":{\"type\":\"string\"},\"call\":{\"type\":\"string\"},"
        "\"words\":{\"type\":\"string\"},\"main\":{\"type\":\"boolean\"},"
        "\"python\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/frame\"}}}}},\n"
        "\"type\":\"object\",\"required\":[\"hang\",\"verdict\",\"text\",\"processes\"],\"properties\":{"
        "\"hang\":{\"const\":1},\"text\":{\"type\":\"string\"},\n"
        "\"verdict\":{\"enum\":[\"nobody\",\"goes on\",\"gone\",\"stopped\",\"absent\",\"mismatch\",\"inside\","
        "\"stands\"]},\n"
        "\"processes\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"required\":[\"rank\",\"pid\",\"state\","
        "\"accused\",\"in\",\"at\",\"threads\"],\"properties\":{\"rank\":{\"type\":[\"integer\",\"null\"]},"
        "\"pid\":{\"type\":\"integer\"},\"host\":{\"type\":\"string\"},"
        "\"state\":{\"enum\":[\"told\",\"silent\",\"stopped\",\"gone\"]},\"step\":{\"type\":\"integer\"},"
        "\"accused\":{\"type\":\"boolean\"},\"in\":{\"type\":[\"string\",\"null\"]},"
        "\"since_ms\":{\"type\":\"number\"},\"at\":{\"anyOf\":[{\"type\":\"null\"},{\"$ref\":\"#/$defs/frame\"}]},"
        "\"threads\":{\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/thread\"}}}}}}}\n",
        out);
}
