/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Names of classes, methods, attributes and status values. Programs print
 * them, scripts parse what is printed: they are spelled as the original
 * spells them (tests/abi compares every value).
 */
#include <infiniband/umad_types.h>

#include "umad_private.h"

struct name {
	uint16_t value;
	const char *name;
};

static const char *find_name(const struct name *names, size_t n, uint16_t value)
{
	for (size_t i = 0; i < n; i++)
		if (names[i].value == value)
			return names[i].name;
	return NULL;
}

#define FIND(table, value) find_name(table, ARRAY_SIZE(table), value)

static const struct name class_names[] = {
	{0x01, "Subn"},	  {0x81, "Subn"},    {0x03, "SubnAdm"}, {0x04, "Perf"},
	{0x05, "BM"},	  {0x06, "DevMgt"},  {0x07, "ComMgt"},	{0x08, "SNMP"},
	{0x10, "DevAdm"}, {0x11, "BootMgt"}, {0x12, "BIS"},	{0x21, "CongestionManagment"},
};

const char *umad_class_str(uint8_t mgmt_class)
{
	const char *name = FIND(class_names, mgmt_class);

	if (name)
		return name;
	if ((mgmt_class >= UMAD_CLASS_VENDOR_RANGE1_START &&
	     mgmt_class <= UMAD_CLASS_VENDOR_RANGE1_END) ||
	    (mgmt_class >= UMAD_CLASS_VENDOR_RANGE2_START &&
	     mgmt_class <= UMAD_CLASS_VENDOR_RANGE2_END))
		return "Vendor";
	if (mgmt_class >= UMAD_CLASS_APPLICATION_START &&
	    mgmt_class <= UMAD_CLASS_APPLICATION_END)
		return "Application";
	return "<unknown>";
}

static const struct name method_names[] = {
	{0x01, "Get"},	  {0x02, "Set"},	 {0x81, "GetResp"}, {0x03, "Send"}, {0x05, "Trap"},
	{0x06, "Report"}, {0x86, "ReportResp"}, {0x07, "TrapRepress"},
};

static const struct name sa_method_names[] = {
	{0x12, "GetTable"}, {0x92, "GetTableResp"}, {0x13, "GetTraceTable"},
	{0x14, "GetMulti"}, {0x94, "GetMultiResp"}, {0x15, "Delete"},
	{0x95, "DeleteResp"},
};

const char *umad_method_str(uint8_t mgmt_class, uint8_t method)
{
	const char *name = FIND(method_names, method);

	if (!name && mgmt_class == UMAD_CLASS_SUBN_ADM)
		name = FIND(sa_method_names, method);
	return name ? name : "<unknown"; /* the bracket is the original's */
}

static const struct name common_attributes[] = {
	{1, "Class Port Info"},
	{2, "Notice"},
	{3, "Inform Info"},
};

static const struct name smp_attributes[] = {
	{0x10, "NodeDescription"}, {0x11, "NodeInfo"},
	{0x12, "SwitchInfo"},	   {0x14, "GUIDInfo"},
	{0x15, "PortInfo"},	   {0x16, "P_KeyTable"},
	{0x17, "SLtoVLMappingTable"}, {0x18, "VLArbitrationTable"},
	{0x19, "LinearForwardingTable"}, {0x1a, "RandomForwardingTable"},
	{0x1b, "MulticastForwardingTable"}, {0x1c, "LinkSpeedWidthPairsTable"},
	{0x1d, "VendorSpecificMadsTable"}, {0x1e, "HierarchyInfo"},
	{0x20, "SMInfo"},	   {0x30, "VendorDiag"},
	{0x31, "LedInfo"},	   {0x32, "CableInfo"},
	{0x33, "PortInfoExtended"},
};

static const struct name sa_attributes[] = {
	{0x11, "NodeRecord"}, {0x12, "PortInfoRecord"},
	{0x13, "SLtoVLMappingTableRecord"}, {0x14, "SwitchInfoRecord"},
	{0x15, "LinearForwardingTableRecord"}, {0x16, "RandomForwardingTableRecord"},
	{0x17, "MulticastForwardingTableRecord"}, {0x18, "SMInfoRecord"},
	{0x19, "LinkSpeedWidthPairsTableRecord"}, {0xf3, "InformInfoRecord"},
	{0x20, "LinkRecord"}, {0x30, "GuidInfoRecord"},
	{0x31, "ServiceRecord"}, {0x33, "P_KeyTableRecord"},
	{0x35, "PathRecord"}, {0x36, "VLArbitrationTableRecord"},
	{0x38, "MCMemberRecord"}, {0x39, "TraceRecord"},
	{0x3a, "MultiPathRecord"}, {0x3b, "ServiceAssociationRecord"},
	{0x3c, "HierarchyInfoRecord"}, {0x3d, "CableInfoRecord"},
	{0x3e, "PortInfoExtendedRecord"},
};

static const struct name cm_attributes[] = {
	{0x10, "ConnectRequest"}, {0x11, "MsgRcptAck"}, {0x12, "ConnectReject"},
	{0x13, "ConnectReply"}, {0x14, "ReadyToUse"}, {0x15, "DisconnectRequest"},
	{0x16, "DisconnectReply"}, {0x17, "ServiceIDResReq"}, {0x18, "ServiceIDResReqResp"},
	{0x19, "LoadAlternatePath"}, {0x1a, "AlternatePathResponse"},
	{0x1b, "SuggestAlternatePath"}, {0x1c, "SuggestPathResponse"},
};

const char *umad_attribute_str(uint8_t mgmt_class, __be16 attr_id)
{
	uint16_t id = be16toh(attr_id);
	const char *name = FIND(common_attributes, id);

	if (name)
		return name;
	if (mgmt_class == UMAD_CLASS_SUBN_LID_ROUTED ||
	    mgmt_class == UMAD_CLASS_SUBN_DIRECTED_ROUTE)
		name = FIND(smp_attributes, id);
	else if (mgmt_class == UMAD_CLASS_SUBN_ADM)
		name = FIND(sa_attributes, id);
	else if (mgmt_class == UMAD_CLASS_CM)
		name = FIND(cm_attributes, id);
	return name ? name : "<unknown>";
}

static const struct name invalid_field_names[] = {
	{UMAD_STATUS_BAD_VERSION, "Bad Version"},
	{UMAD_STATUS_METHOD_NOT_SUPPORTED, "Method not supported"},
	{UMAD_STATUS_ATTR_NOT_SUPPORTED, "Method/Attribute combo not supported"},
	{UMAD_STATUS_INVALID_ATTR_VALUE, "Invalid attribute/modifier field"},
};

const char *umad_common_mad_status_str(__be16 status)
{
	uint16_t s = be16toh(status);
	const char *name;

	if (s & UMAD_STATUS_BUSY)
		return "Busy";
	if (s & UMAD_STATUS_REDIRECT)
		return "Redirection required";
	name = FIND(invalid_field_names, s & UMAD_STATUS_INVALID_FIELD_MASK);
	return name ? name : "Success";
}

static const char *const sa_status_names[] = {
	"Success",     "No Resources", "Request Invalid",	  "No Records",
	"Too Many Records", "Invalid GID", "Insufficient Components", "Request Denied",
	"Priority Suggested",
};

const char *umad_sa_mad_status_str(__be16 status)
{
	uint16_t s = be16toh(status) >> 8; /* the class's half */

	return s < ARRAY_SIZE(sa_status_names) ? sa_status_names[s] : "Undefined Error";
}
