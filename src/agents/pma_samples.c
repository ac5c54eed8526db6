/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * The PMA's sampling mechanism (IBA v1 16.1.3.2 to 16.1.3.4) counts during one
 * interval that begins later. A Set of PortSamplesControl starts it:
 *
 *   Done  --Set-->  Waits (SampleStart)  --start-->  Runs  --end-->  Done
 *
 * The caller drives it by calling ag_expire() at the time ag_expiry().
 */
#include "agents/agents_private.h"

/* CounterSelect values that are mandatory (table 222) */
static const uint8_t counter_of[] = {
	[1] = AG_XMIT_DATA, [2] = AG_RCV_DATA, [3] = AG_XMIT_PACKETS, [4] = AG_RCV_PACKETS,
	[5] = AG_XMIT_WAIT,
};

static uint64_t value_of(const struct ag_port *port, uint16_t select)
{
	if (select == 0 || select >= ARRAY_SIZE(counter_of))
		return 0;
	return port->count.raw[counter_of[select]];
}

void ag_samples_expire(struct ag_port *port, mono_t now)
{
	struct ag_samples *s = &port->seldom->samples;

	if (!port->sampled)
		return;
	if (s->status == AG_SAMPLE_WAITS && !mono_before(now, s->start)) {
		for (size_t i = 0; i < AG_SAMPLE_COUNTERS; i++)
			s->first[i] = value_of(port, s->select[i]);
		s->status = AG_SAMPLE_RUNS;
	}
	if (s->status == AG_SAMPLE_RUNS && !mono_before(now, s->end)) {
		for (size_t i = 0; i < AG_SAMPLE_COUNTERS; i++) {
			uint64_t n = value_of(port, s->select[i]) - s->first[i];

			s->result[i] = (uint32_t)MIN(n, (uint64_t)UINT32_MAX);
		}
		s->status = AG_SAMPLE_DONE;
	}
}

static struct ag_port *selected(const struct ag_request *rq, uint8_t port_select)
{
	if (!ag_port_exists(rq->node, port_select))
		return NULL;
	return &rq->node->port[port_select];
}

uint16_t ag_samples_control_get(struct ag_request *rq)
{
	struct wire_port_samples_control in, out;
	const struct ag_port *port;

	wire_port_samples_control_decode(rq->data, WIRE_PMA_DATA_BYTES, &in);
	port = selected(rq, in.port_select);
	if (!port)
		return WIRE_STATUS_BAD_FIELD;
	out = (struct wire_port_samples_control){
		.op_code = in.op_code,
		.port_select = in.port_select,
		.counter_width = 4, /* 32 bits */
		/* 2: counters 0 to 4 may select any of the mandatory values */
		.counter_mask0 = 2,
		.counter_masks_1to9 = 02222u << 15,
		.sample_status = port->seldom->samples.status,
		.sample_start = port->seldom->samples.start_ticks,
		.sample_interval = port->seldom->samples.interval_ticks,
		.tag = port->seldom->samples.tag,
	};
	for (size_t i = 0; i < AG_SAMPLE_COUNTERS; i++)
		out.counter_select[i] = port->seldom->samples.select[i];
	wire_port_samples_control_encode(&out, rq->data);
	return WIRE_STATUS_OK;
}

uint16_t ag_samples_control_set(struct ag_request *rq)
{
	struct wire_port_samples_control in;
	struct ag_samples *s;
	struct ag_port *port;

	wire_port_samples_control_decode(rq->data, WIRE_PMA_DATA_BYTES, &in);
	port = selected(rq, in.port_select);
	if (!port)
		return WIRE_STATUS_BAD_FIELD;
	s = &port->seldom->samples;
	if (s->status != AG_SAMPLE_DONE) /* 16.1.3.2: no effect while it runs */
		return WIRE_STATUS_OK;
	for (size_t i = 0; i < AG_SAMPLE_COUNTERS; i++) {
		if (in.counter_select[i] >= ARRAY_SIZE(counter_of))
			return WIRE_STATUS_BAD_FIELD;
	}
	for (size_t i = 0; i < AG_SAMPLE_COUNTERS; i++)
		s->select[i] = in.counter_select[i];
	s->tag = in.tag;
	s->start_ticks = in.sample_start;
	s->interval_ticks = in.sample_interval;
	s->start = mono_add(rq->ctx->now, (uint64_t)in.sample_start * AG_TICK_NS);
	s->end = mono_add(s->start, (uint64_t)in.sample_interval * AG_TICK_NS);
	s->status = AG_SAMPLE_WAITS;
	port->sampled = true;
	rq->effect->changes |= AG_CHANGED_TRAPS; /* ag_expiry() has changed */
	ag_samples_expire(port, rq->ctx->now);
	return WIRE_STATUS_OK;
}

/* PortSamplesResult has no PortSelect: AttributeModifier selects the port, or else it is the
 * ingress port */
static const struct ag_samples *result_of(const struct ag_request *rq)
{
	if (rq->attr_mod > UINT8_MAX ||
	    !ag_port_exists(rq->node, rq->attr_mod ? rq->attr_mod : rq->port_num))
		return NULL;
	return &rq->node->port[rq->attr_mod ? rq->attr_mod : rq->port_num].seldom->samples;
}

uint16_t ag_samples_result_get(struct ag_request *rq)
{
	const struct ag_samples *s = result_of(rq);
	struct wire_port_samples_result out = {0};

	if (!s)
		return WIRE_STATUS_BAD_FIELD;
	out.tag = s->tag;
	out.sample_status = s->status;
	for (size_t i = 0; i < AG_SAMPLE_COUNTERS; i++)
		out.counter[i] = s->result[i];
	wire_port_samples_result_encode(&out, rq->data);
	return WIRE_STATUS_OK;
}

uint16_t ag_samples_result_ext_get(struct ag_request *rq)
{
	const struct ag_samples *s = result_of(rq);
	struct wire_port_samples_result_extended out = {.extended_width = 2};

	if (!s)
		return WIRE_STATUS_BAD_FIELD;
	out.tag = s->tag;
	out.sample_status = s->status;
	for (size_t i = 0; i < AG_SAMPLE_COUNTERS; i++)
		out.counter[i] = s->result[i];
	wire_port_samples_result_extended_encode(&out, rq->data);
	return WIRE_STATUS_OK;
}
