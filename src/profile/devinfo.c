/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Converts the output of ibv_devinfo -v to a profile. Its versions and vendors print
 * different fields, so unknown lines are ignored. A list of capabilities has one line for
 * each, below its name.
 */
#include "profile/profile.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profile/fields.h"
#include "profile/text.h"

#define HCA_ID "hca_id"
#define NONE   UINT32_MAX

/** struct walk - the position in the output */
struct walk {
	struct profile *profile;
	bool in_device; /* the lines are those of the selected device */
	unsigned list;	/* the row of the list to which the lines belong; NONE */
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

	if (p->given & 1ull << row) /* of tag matching, which has a max_sge, too */
		return;
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

/* A line without a colon is an element of a list, or says that a feature is missing. */
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

/* Return: whether the following lines are those of the selected device */
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
		else if (!strncmp(line, "port:", 5)) /* the topology defines the ports */
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
