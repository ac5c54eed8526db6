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

#define NUMBER(name, c_type, wide_type, read, format)                                    \
	static int set_##name(const char *value, const struct kernel_param *param)       \
	{                                                                                \
		wide_type n;                                                             \
		int ret = read;                                                          \
		if (!ret)                                                                \
			*(c_type *)param->arg = (c_type)n;                               \
		return ret;                                                              \
	}                                                                                \
	static int get_##name(char *text, size_t bytes, const struct kernel_param *param) \
	{                                                                                \
		return snprintf(text, bytes, format, (wide_type) * (const c_type *)param->arg); \
	}                                                                                \
	const struct kernel_param_ops param_ops_##name = {set_##name, get_##name};
#define SIGNED(name, c_type, least, most)                                                \
	NUMBER(name, c_type, long long, read_signed(value, least, most, &n), "%lld")
#define UNSIGNED(name, c_type, most)                                                     \
	NUMBER(name, c_type, unsigned long long, read_unsigned(value, most, &n), "%llu")

SIGNED(short, short, SHRT_MIN, SHRT_MAX)
SIGNED(int, int, INT_MIN, INT_MAX)
SIGNED(long, long, LONG_MIN, LONG_MAX)
UNSIGNED(byte, unsigned char, UCHAR_MAX)
UNSIGNED(ushort, unsigned short, USHRT_MAX)
UNSIGNED(uint, unsigned int, UINT_MAX)
UNSIGNED(ulong, unsigned long, ULONG_MAX)
UNSIGNED(ullong, unsigned long long, ULLONG_MAX)

static int set_bool(const char *value, const struct kernel_param *param)
{
	if (!value[0] || strchr("yY1", value[0]) || !strcmp(value, "on"))
		*(bool *)param->arg = true;
	else if (strchr("nN0", value[0]) || !strcmp(value, "off"))
		*(bool *)param->arg = false;
	else
		return -EINVAL;
	return 0;
}

static int get_bool(char *text, size_t bytes, const struct kernel_param *param)
{
	return snprintf(text, bytes, "%c", *(const bool *)param->arg ? 'Y' : 'N');
}

const struct kernel_param_ops param_ops_bool = {set_bool, get_bool};

static int set_charp(const char *value, const struct kernel_param *param)
{
	*(const char **)param->arg = value;
	return 0;
}

static int get_charp(char *text, size_t bytes, const struct kernel_param *param)
{
	const char *value = *(const char *const *)param->arg;

	return snprintf(text, bytes, "%s", value ? value : "(null)");
}

const struct kernel_param_ops param_ops_charp = {set_charp, get_charp};

/* --- arrays --- */

static struct kernel_param element(const struct kernel_param *array, unsigned int i)
{
	struct kernel_param one = *array;

	one.arg = (char *)array->arg + (size_t)i * array->elem_bytes;
	return one;
}

/* @values, which is cut at its commas, stays where it is as long as the module does */
static int set_array(char *values, const struct kernel_param *array)
{
	unsigned int n = 0;
	char *value;

	while ((value = strsep(&values, ","))) {
		struct kernel_param one = element(array, n);

		if (n == array->max || array->ops->set(value, &one))
			return -EINVAL;
		n++;
	}
	if (array->num)
		*array->num = n;
	return 0;
}

size_t module_param_text(const struct kernel_param *param, char *text, size_t bytes)
{
	unsigned int num = !param->max ? 1 : param->num ? MIN(*param->num, param->max) : param->max;
	size_t len = 0;

	text[0] = 0;
	for (unsigned int i = 0; i < num && len < bytes; i++) {
		struct kernel_param one = element(param, i);

		if (i)
			len += (size_t)snprintf(text + len, bytes - len, ",");
		if (len < bytes)
			len += (size_t)one.ops->get(text + len, bytes - len, &one);
	}
	return MIN(len, bytes - 1);
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
static char *keep(struct module_state *state, const char *text)
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
	char *value;
	int ret;

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
	ret = param->max ? set_array(value, param) : param->ops->set(value, param);
	if (!ret)
		return 0;
	if (param->max) {
		snprintf(err, MODULE_TEXT_BYTES, "'%.80s' is no value of type %s for the parameter %s, "
			 "which has %u elements at most", text + len + 1, param->type, param->name,
			 param->max);
		return -1;
	}
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
