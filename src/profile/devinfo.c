/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * What ibv_devinfo -v prints of an adapter, as a profile. Its versions and vendors print
 * different things, so that what is not known here is passed over. Lists of capabilities
 * stand below their name, a line for each.
 */
#include "profile/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/fields.h"
#include "profile/text.h"

#define HCA_ID "hca_id"
#define NONE   UINT32_MAX

/** struct walk - where in the output one is */
struct walk {
	struct profile *profile;
	bool in_device; /* the one that is meant */
	unsigned list;	/* the row whose words the lines are; NONE */
};

static unsigned row_of(const char *name)
{
	for (unsigned row = 0; row < profile_num_fields; row++)
		if (profile_fields[row].devinfo && !strcmp(profile_fields[row].devinfo, name))
			return row;
	return NONE;
}

static void take_value(struct walk *w, unsigned row, char *text)
{
	const struct profile_field *f = &profile_fields[row];
	struct profile *p = w->profile;
	const struct profile_word *word;

	switch (f->syntax) {
	case PROFILE_TEXT:
		snprintf(p->fw_ver, sizeof(p->fw_ver), "%s", text);
		break;
	case PROFILE_WORD: /* ATOMIC_HCA (1) */
		text[strcspn(text, " ")] = 0;
		word = profile_word(f->words, text);
		if (!word)
			return;
		p->value[row] = word->value;
		break;
	case PROFILE_WORDS:
		w->list = row;
		break;
	default: /* 131072Bytes, 4095 us */
		if (!profile_number(text, &p->value[row]))
			return;
	}
	p->given |= 1ull << row;
}

/* A line without a colon: an element of a list, or that there is no such thing. */
static void take_words(struct walk *w, const char *line)
{
	const struct profile_word *word;

	if (!strcmp(line, "completion_timestamp_mask not supported"))
		w->profile->given |= 1ull << row_of("completion timestamp_mask");
	if (w->list == NONE)
		return;
	word = profile_word(profile_fields[w->list].words, line);
	if (word)
		w->profile->value[w->list] |= word->value;
}

static void take_line(struct walk *w, char *line)
{
	char *colon = strchr(line, ':');
	unsigned row;

	if (!colon) {
		take_words(w, line);
		return;
	}
	*colon = 0;
	row = row_of(profile_trim(line));
	w->list = NONE;
	if (row != NONE)
		take_value(w, row, profile_trim(colon + 1));
}

/* Return: whether the lines that follow are of the device that is meant */
static bool is_meant(struct walk *w, const char *id, const char *device)
{
	if (w->profile->name[0] || (device && strcmp(device, id)))
		return false;
	snprintf(w->profile->name, sizeof(w->profile->name), "%s", id);
	return true;
}

int profile_from_devinfo(const char *text, const char *device, struct profile *profile,
			 char *err, size_t err_bytes)
{
	struct walk w = {.profile = profile, .list = NONE};
	char buffer[512], *line;

	memset(profile, 0, sizeof(*profile));
	while (*text) {
		if (!profile_next_line(&text, buffer, sizeof(buffer)))
			continue;
		line = profile_trim(buffer);
		if (!strncmp(line, HCA_ID ":", strlen(HCA_ID ":")))
			w.in_device = is_meant(&w, profile_trim(line + strlen(HCA_ID ":")), device);
		else if (!strncmp(line, "port:", 5)) /* ports are the topology's */
			w.in_device = false;
		else if (w.in_device)
			take_line(&w, line);
	}
	if (!profile->name[0])
		snprintf(err, err_bytes, device ? "no adapter '%s' is in it%s" : "%s%s",
			 device ? device : "it is not what ibv_devinfo -v prints: no line begins "
					   "with hca_id:", "");
	else if (!(profile->given & 1ull << row_of("max_qp")))
		snprintf(err, err_bytes, "there is no max_qp of %s: ibv_devinfo needs -v",
			 profile->name);
	else
		return 0;
	return -EINVAL;
}
