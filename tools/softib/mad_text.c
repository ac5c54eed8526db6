/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* A management datagram as text. The names of classes, attributes and fields come from the
 * tables of src/wire; those of methods (13.4.5), statuses and RMPP types (13.6.2) are here. */
#include <ctype.h>
#include <string.h>

#include "mad_text.h"
#include "wire/cm.h"
#include "wire/sa.h"
#include "wire/smp.h"
#include "wire/vendor.h"

struct name {
	unsigned int value;
	const char *text;
};

static const struct name methods[] = {
	{WIRE_METHOD_GET, "Get"},
	{WIRE_METHOD_SET, "Set"},
	{WIRE_METHOD_SEND, "Send"},
	{WIRE_METHOD_TRAP, "Trap"},
	{WIRE_METHOD_REPORT, "Report"},
	{WIRE_METHOD_TRAP_REPRESS, "TrapRepress"},
	{WIRE_METHOD_GET_TABLE, "GetTable"},
	{WIRE_METHOD_GET_TRACE_TABLE, "GetTraceTable"},
	{WIRE_METHOD_GET_MULTI, "GetMulti"},
	{WIRE_METHOD_DELETE, "Delete"},
	{WIRE_METHOD_GET_RESP, "GetResp"},
	{WIRE_METHOD_REPORT_RESP, "ReportResp"},
	{WIRE_METHOD_GET_TABLE_RESP, "GetTableResp"},
	{WIRE_METHOD_GET_MULTI_RESP, "GetMultiResp"},
	{WIRE_METHOD_DELETE_RESP, "DeleteResp"},
	{0, NULL},
};

static const struct name rmpp_types[] = {
	{WIRE_RMPP_DATA, "DATA"},
	{WIRE_RMPP_ACK, "ACK"},
	{WIRE_RMPP_STOP, "STOP"},
	{WIRE_RMPP_ABORT, "ABORT"},
	{0, NULL},
};

static const struct name statuses[] = { /* 13.4.7, bits 1..4 */
	{WIRE_STATUS_BAD_VERSION, "class version not supported"},
	{WIRE_STATUS_BAD_METHOD, "method not supported"},
	{WIRE_STATUS_BAD_METHOD_ATTR, "attribute not supported with this method"},
	{WIRE_STATUS_BAD_FIELD, "wrong value in attribute or modifier"},
	{0, NULL},
};

static const struct name sa_statuses[] = { /* 15.2.1.1.3 */
	{WIRE_SA_NO_RESOURCES, "no resources"},
	{WIRE_SA_REQUEST_INVALID, "invalid request"},
	{WIRE_SA_NO_RECORDS, "no records"},
	{WIRE_SA_TOO_MANY_RECORDS, "too many records"},
	{WIRE_SA_INVALID_GID, "invalid GID"},
	{WIRE_SA_INSUFFICIENT_COMPONENTS, "insufficient components"},
	{WIRE_SA_DENIED, "denied"},
	{WIRE_SA_PRIORITY_SUGGESTED, "priority suggested"},
	{0, NULL},
};

static const char *name_of(const struct name *table, unsigned int value)
{
	while (table->text && table->value != value)
		table++;
	return table->text;
}

/* --- fields ------------------------------------------------------------------ */

/** struct fields - the field that is being printed, and its elements so far */
struct fields {
	FILE *out;
	uint64_t element[256];
	unsigned int count;
};

static bool is_text(const struct wire_field *f, const struct fields *s)
{
	unsigned int end = 0;

	if (f->width != 8 || strcmp(f->name, "text"))
		return false;
	while (end < s->count && isprint((int)s->element[end]))
		end++;
	return end && (end == s->count || !s->element[end]);
}

static void print_value(const struct fields *s, const struct wire_field *f)
{
	if (is_text(f, s)) {
		for (unsigned int i = 0; i < s->count && s->element[i]; i++)
			fputc((int)s->element[i], s->out);
	} else if (s->count == 1 && s->element[0] > UINT32_MAX) { /* a GUID, a key, a mask */
		fprintf(s->out, "0x%016llx", (unsigned long long)s->element[0]);
	} else if (s->count == 1) {
		fprintf(s->out, s->element[0] < 10 ? "%u" : "%u (0x%x)",
			(unsigned int)s->element[0], (unsigned int)s->element[0]);
	} else if (f->width == 8 && s->count == 16) { /* a GID */
		for (unsigned int i = 0; i < s->count; i++)
			fprintf(s->out, "%s%02x", i && i % 2 == 0 ? ":" : "",
				(unsigned int)s->element[i]);
	} else {
		for (unsigned int i = 0; i < s->count; i++)
			fprintf(s->out, "%s%llu", i ? " " : "",
				(unsigned long long)s->element[i]);
	}
}

static void field(void *ctx, const struct wire_field *f, unsigned int index, uint64_t value)
{
	struct fields *s = ctx;
	uint64_t any = 0;

	if (index >= ARRAY_SIZE(s->element))
		return;
	s->element[index] = value;
	s->count = index + 1;
	if (s->count < MIN(f->count, ARRAY_SIZE(s->element)))
		return;
	for (unsigned int i = 0; i < s->count; i++)
		any |= s->element[i];
	if (!any)
		return;
	fprintf(s->out, "\n    %-28.*s ", (int)strcspn(f->name, "."), f->name);
	print_value(s, f);
}

static void print_struct(FILE *out, const struct wire_codec *codec, const uint8_t *bytes,
			 size_t len)
{
	union {
		uint64_t align;
		uint8_t bytes[4096];
	} obj;
	struct fields fields = {.out = out};

	if (codec->struct_bytes <= sizeof(obj) &&
	    wire_fields_decode(codec, bytes, len, &obj) > 0)
		wire_fields_visit(codec, &obj, field, &fields);
}

/* --- the classes --------------------------------------------------------------- */

static void print_path(FILE *out, const uint8_t *mad, size_t len)
{
	struct wire_smp smp;

	if (wire_smp_decode(mad, len, &smp) < 0 || smp.hop_count > WIRE_SMP_HOPS_MAX)
		return;
	fprintf(out, " path 0");
	for (unsigned int hop = 1; hop <= smp.hop_count; hop++)
		fprintf(out, ",%u", smp.initial_path[hop]);
	fprintf(out, " hop %u of %u%s", smp.hop_pointer, smp.hop_count,
		smp.direction ? " returning" : "");
}

/* Return: does the segment carry no attribute, or not the beginning of one? */
static bool print_rmpp(FILE *out, const uint8_t *mad, size_t len)
{
	struct wire_rmpp rmpp;
	const char *type;

	if (wire_rmpp_decode(mad + WIRE_RMPP_OFFSET, len - WIRE_RMPP_OFFSET, &rmpp) < 0 ||
	    !(rmpp.flags & WIRE_RMPP_ACTIVE))
		return false;
	type = name_of(rmpp_types, rmpp.type);
	fprintf(out, " RMPP %s segment %u %s %u%s", type ? type : "of unknown type",
		rmpp.segment, rmpp.type == WIRE_RMPP_ACK ? "window to" : "length",
		rmpp.length, rmpp.flags & WIRE_RMPP_LAST ? " last" : "");
	if (rmpp.status)
		fprintf(out, " RMPP status %u", rmpp.status);
	return rmpp.type != WIRE_RMPP_DATA || rmpp.segment != 1;
}

static void print_status(FILE *out, const struct wire_mad *mad)
{
	unsigned int status = mad->status;
	const char *why = NULL;

	if (mad->mgmt_class == WIRE_CLASS_SM_DIRECT)
		status &= ~(unsigned int)WIRE_STATUS_DIRECTION;
	if (!status)
		return;
	fprintf(out, " status 0x%04x", status);
	if (mad->mgmt_class == WIRE_CLASS_SA)
		why = name_of(sa_statuses, status & WIRE_STATUS_CLASS_MASK);
	if (!why)
		why = name_of(statuses, status & WIRE_STATUS_BAD_FIELD);
	if (!why && status & WIRE_STATUS_REDIRECT)
		why = "redirected";
	if (!why && status & WIRE_STATUS_BUSY)
		why = "busy";
	if (why)
		fprintf(out, " (%s)", why);
}

static void print_name(FILE *out, const struct wire_mad *mad, const struct wire_mgmt_class *cls,
		       const struct wire_attr *attr)
{
	const char *method = name_of(methods, mad->method);

	if (cls)
		fprintf(out, "%s", cls->name);
	else
		fprintf(out, "Class0x%02x", mad->mgmt_class);
	if (method)
		fprintf(out, "%s(", method);
	else
		fprintf(out, "Method0x%02x(", mad->method);
	if (attr)
		fprintf(out, "%s)", attr->codec->name);
	else
		fprintf(out, "0x%04x)", mad->attr_id);
}

void mad_text(FILE *out, const void *bytes, size_t len, bool fields)
{
	const struct wire_mgmt_class *cls;
	const struct wire_attr *attr;
	bool opaque = false;
	struct wire_mad mad;

	if (len < WIRE_MAD_BYTES || wire_mad_decode(bytes, len, &mad) < 0) {
		fprintf(out, "MAD of %zu bytes, which is too short", len);
		return;
	}
	cls = wire_class_find(mad.mgmt_class);
	attr = cls ? wire_attr_find(cls, mad.attr_id) : NULL;
	print_name(out, &mad, cls, attr);
	fprintf(out, " modifier %#x tid %#llx", mad.attr_mod, (unsigned long long)mad.tid);
	if (mad.mgmt_class == WIRE_CLASS_SM_DIRECT)
		print_path(out, bytes, len);
	if (wire_class_has_rmpp(mad.mgmt_class))
		opaque = print_rmpp(out, bytes, len);
	print_status(out, &mad);
	if (fields && attr && !opaque)
		print_struct(out, attr->codec, (const uint8_t *)bytes + cls->data_offset,
			     len - cls->data_offset);
}
