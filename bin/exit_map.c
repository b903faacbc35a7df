/* exit_map.c: see exit_map.h. */
#include "exit_map.h"
#include "cli.h"
#include "delay_level.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_DEAD = 100, CODE_NOT_EXECUTABLE = 126, CODE_NOT_FOUND = 127 };

void exit_map_init(struct exit_map *m)
{
	for (int i = 0; i < 256; i++)
		m->code[i] = (struct exit_action){ .what = EXIT_RETRY };
	m->code[0].what = EXIT_OK;
	m->code[CODE_DEAD].what = EXIT_DEAD;
	m->code[CODE_NOT_EXECUTABLE].what = m->code[CODE_NOT_FOUND].what = EXIT_STOP;
	m->on_signal.what = m->on_timeout.what = EXIT_RETRY;
}

static struct exit_action action_of(const char *word)
{
	struct exit_action a = { .what = EXIT_RETRY };

	if (strcmp(word, "ok") == 0)
		a.what = EXIT_OK;
	else if (strcmp(word, "dead") == 0)
		a.what = EXIT_DEAD;
	else if (strcmp(word, "stop") == 0)
		a.what = EXIT_STOP;
	else if (strncmp(word, "retry:", 6) == 0)
		a.level = delay_level_parse("--on-exit", word + 6, &a.ms);
	else if (strcmp(word, "retry") != 0)
		cli_usage_error("--on-exit: '%s' is none of ok, retry, retry:DURATION, retry:level:N, dead, stop", word);
	return a;
}

static void change(struct exit_map *m, const char *codes, struct exit_action a, bool named[256])
{
	char *end;
	long from, to;

	if (strcmp(codes, "signal") == 0) {
		m->on_signal = a;
		return;
	}
	if (strcmp(codes, "timeout") == 0) {
		m->on_timeout = a;
		return;
	}
	if (strcmp(codes, "other") == 0) {
		for (int i = 1; i < 256; i++)
			if (!named[i])
				m->code[i] = a;
		return;
	}
	from = to = strtol(codes, &end, 10);
	if (isdigit((unsigned char)codes[0]) && *end == '-' && isdigit((unsigned char)end[1]))
		to = strtol(end + 1, &end, 10);
	if (!isdigit((unsigned char)codes[0]) || *end || from > to || to > 255)
		cli_usage_error("--on-exit: '%s' is none of N, N-M (0 to 255), signal, timeout, other", codes);
	for (long i = from; i <= to; i++) {
		m->code[i] = a;
		named[i] = true;
	}
}

void exit_map_change(struct exit_map *m, const char *text)
{
	bool named[256] = { false };
	char *copy = strdup(text), *save = NULL;

	if (!copy)
		cli_die(CLI_SYSTEM, "out of memory");
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *eq = strchr(word, '=');

		if (!eq)
			cli_usage_error("--on-exit: '%s': CODES=ACTION is right", word);
		*eq = '\0';
		change(m, word, action_of(eq + 1), named);
	}
	free(copy);
}

const struct exit_action *exit_map_of(const struct exit_map *m, const struct child_end *end)
{
	if (end->timed_out)
		return &m->on_timeout;
	return end->code >= 0 && end->code < 256 ? &m->code[end->code] : &m->on_signal;
}
