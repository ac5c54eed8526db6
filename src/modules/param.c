/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Parameters of modules: parses "name=value" into the variables of module_param(). */
#include <errno.h>

#include "modules/private.h"

/** struct param_text - a value of type charp, which lives as long as the module */
struct param_text {
	struct list_head node;
	char text[];
};

/* --- types --- */

static int read_signed(const char *value, long long least, long long most, long long *out)
{
	char *end;

	errno = 0;
	*out = strtoll(value, &end, 0);
	return errno || end == value || *end || *out < least || *out > most ? -EINVAL : 0;
}

static int read_unsigned(const char *value, unsigned long long most, unsigned long long *out)
{
	char *end;

	errno = 0;
	*out = strtoull(value, &end, 0);
	return errno || end == value || *end || *out > most || strchr(value, '-') ? -EINVAL : 0;
}

#define SIGNED(name, c_type, least, most)                                                \
	int param_set_##name(const char *value, const struct kernel_param *param)       \
	{                                                                                \
		long long n;                                                             \
		int ret = read_signed(value, least, most, &n);                           \
		if (!ret)                                                                \
			*(c_type *)param->arg = (c_type)n;                               \
		return ret;                                                              \
	}
#define UNSIGNED(name, c_type, most)                                                     \
	int param_set_##name(const char *value, const struct kernel_param *param)       \
	{                                                                                \
		unsigned long long n;                                                    \
		int ret = read_unsigned(value, most, &n);                                \
		if (!ret)                                                                \
			*(c_type *)param->arg = (c_type)n;                               \
		return ret;                                                              \
	}

SIGNED(short, short, SHRT_MIN, SHRT_MAX)
SIGNED(int, int, INT_MIN, INT_MAX)
SIGNED(long, long, LONG_MIN, LONG_MAX)
UNSIGNED(byte, unsigned char, UCHAR_MAX)
UNSIGNED(ushort, unsigned short, USHRT_MAX)
UNSIGNED(uint, unsigned int, UINT_MAX)
UNSIGNED(ulong, unsigned long, ULONG_MAX)
UNSIGNED(ullong, unsigned long long, ULLONG_MAX)

int param_set_bool(const char *value, const struct kernel_param *param)
{
	if (!value[0] || strchr("yY1", value[0]) || !strcmp(value, "on"))
		*(bool *)param->arg = true;
	else if (strchr("nN0", value[0]) || !strcmp(value, "off"))
		*(bool *)param->arg = false;
	else
		return -EINVAL;
	return 0;
}

int param_set_charp(const char *value, const struct kernel_param *param)
{
	*(const char **)param->arg = value;
	return 0;
}

/* --- setting --- */

static const struct kernel_param *find(const struct module *module, const char *name, size_t len)
{
	for (const struct kernel_param *p = module->params; p && p < module->params_end; p++)
		if (strlen(p->name) == len && !strncmp(p->name, name, len))
			return p;
	return NULL;
}

static int unknown(const struct module *module, const char *text, size_t len,
		   char err[MODULE_TEXT_BYTES])
{
	size_t n = (size_t)snprintf(err, MODULE_TEXT_BYTES, "it has no parameter '%.*s'; it has",
				    (int)MIN(len, (size_t)80), text);
	const struct kernel_param *p = module->params;

	if (!p || p == module->params_end)
		snprintf(err + n, MODULE_TEXT_BYTES - n, " none");
	for (; p && p < module->params_end && n < MODULE_TEXT_BYTES; p++)
		n += (size_t)snprintf(err + n, MODULE_TEXT_BYTES - n, " %s (%s)", p->name, p->type);
	return -1;
}

/* Return: a copy of @text that lives as long as the module; NULL */
static const char *keep(struct module_state *state, const char *text)
{
	struct param_text *copy = rt_zalloc(sizeof(*copy) + strlen(text) + 1);

	if (!copy)
		return NULL;
	strcpy(copy->text, text);
	list_add_tail(&copy->node, &state->texts);
	return copy->text;
}

static int set_param(struct module_state *state, const char *text, char err[MODULE_TEXT_BYTES])
{
	size_t len = strcspn(text, "=");
	const struct kernel_param *param = find(state->module, text, len);
	const char *value;

	if (!param)
		return unknown(state->module, text, len, err);
	if (!text[len] && strcmp(param->type, "bool")) {
		snprintf(err, MODULE_TEXT_BYTES, "the parameter %s wants a value: %s=...", param->name,
			 param->name);
		return -1;
	}
	value = keep(state, text[len] ? text + len + 1 : "");
	if (!value) {
		snprintf(err, MODULE_TEXT_BYTES, "out of memory");
		return -1;
	}
	if (!param->set(value, param))
		return 0;
	snprintf(err, MODULE_TEXT_BYTES, "'%.80s' is no value of type %s for the parameter %s", value,
		 param->type, param->name);
	return -1;
}

int module_set_params(struct module_state *state, const char *const *params, size_t num,
		      char err[MODULE_TEXT_BYTES])
{
	for (size_t i = 0; i < num; i++)
		if (set_param(state, params[i], err))
			return -1;
	return 0;
}

void module_free_params(struct module_state *state)
{
	struct param_text *text, *next;

	list_for_each_entry_safe(text, next, &state->texts, node)
		rt_free(text);
	INIT_LIST_HEAD(&state->texts);
}
