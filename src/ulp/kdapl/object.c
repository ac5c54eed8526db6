/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/* Handles, and what all objects have in common. */
#include "ulp/kdapl/private.h"

LIST_HEAD(kd_ias);

#define BUCKETS 1024
static struct list_head objects[BUCKETS];

void kd_objects_init(void)
{
	for (size_t i = 0; i < BUCKETS; i++)
		INIT_LIST_HEAD(&objects[i]);
}

/* objects have some hundred bytes each, which differ in these bits of their addresses */
static struct list_head *bucket_of(const void *handle)
{
	uintptr_t at = (uintptr_t)handle;

	return &objects[(at >> 5 ^ at >> 15) % BUCKETS];
}

static struct kd_object *object_of(DAT_HANDLE handle)
{
	struct kd_object *object;

	list_for_each_entry(object, bucket_of(handle), hash)
		if (object == handle)
			return object;
	return NULL;
}

void *kd_find(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	struct kd_object *object = object_of(handle);

	return object && object->type == type ? object : NULL;
}

void *kd_get(DAT_HANDLE handle, DAT_HANDLE_TYPE type)
{
	struct kd_object *object = kd_find(handle, type);

	return object && object->ia->device ? object : NULL;
}

void *kd_alloc(struct kd_ia *ia, DAT_HANDLE_TYPE type, size_t bytes)
{
	struct kd_object *object = kzalloc(bytes, GFP_KERNEL);

	if (!object)
		return NULL;
	object->type = type;
	object->ia = ia ? ia : (struct kd_ia *)object;
	INIT_LIST_HEAD(&object->node);
	list_add_tail(&object->hash, bucket_of(object));
	if (ia)
		list_add_tail(&object->node, &ia->objects);
	return object;
}

void kd_forget(struct kd_object *object)
{
	list_del(&object->node);
	list_del(&object->hash);
}

void kd_release(struct kd_object *object)
{
	kd_forget(object);
	kfree(object);
}

void kd_use(struct kd_object *object, int change)
{
	object->users += (unsigned int)change;
}

DAT_RETURN kd_error(long ret, DAT_RETURN_SUBTYPE resource)
{
	switch (ret) {
	case 0:
		return DAT_SUCCESS;
	case -ENOMEM:
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, resource);
	case -EOPNOTSUPP:
		return DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, 0);
	case -EINVAL:
		return DAT_ERROR(DAT_INVALID_PARAMETER, 0);
	default:
		return DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	}
}

/* --- functions of all handles --- */

DAT_RETURN dat_set_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT context)
{
	struct kd_object *object = object_of(dat_handle);

	if (!object)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	object->context = context;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_set_consumer_context);

DAT_RETURN dat_get_consumer_context(DAT_HANDLE dat_handle, DAT_CONTEXT *context)
{
	struct kd_object *object = object_of(dat_handle);

	if (!object)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!context)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*context = object->context;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_get_consumer_context);

DAT_RETURN dat_get_handle_type(DAT_HANDLE dat_handle, DAT_HANDLE_TYPE *handle_type)
{
	struct kd_object *object = object_of(dat_handle);

	if (!object)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE1);
	if (!handle_type)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	*handle_type = object->type;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_get_handle_type);

/* --- protection zones --- */

DAT_RETURN dat_pz_create(DAT_IA_HANDLE ia_handle, DAT_PZ_HANDLE *pz_handle)
{
	struct kd_ia *ia = kd_get(ia_handle, DAT_HANDLE_TYPE_IA);
	struct kd_pz *pz;
	struct ib_pd *pd;

	if (!ia)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_IA);
	if (!pz_handle)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	pd = ib_alloc_pd(ia->device, 0);
	if (IS_ERR(pd))
		return kd_error(PTR_ERR(pd), DAT_RESOURCE_PROTECTION_DOMAIN);
	pz = kd_alloc(ia, DAT_HANDLE_TYPE_PZ, sizeof(*pz));
	if (!pz) {
		ib_dealloc_pd(pd);
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	}
	pz->pd = pd;
	*pz_handle = pz;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_pz_create);

DAT_RETURN dat_pz_query(DAT_PZ_HANDLE pz_handle, DAT_PZ_PARAM_MASK pz_param_mask,
			DAT_PZ_PARAM *pz_param)
{
	const struct kd_pz *pz = kd_get(pz_handle, DAT_HANDLE_TYPE_PZ);

	if (!pz)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (pz_param_mask & ~(unsigned int)DAT_PZ_FIELD_ALL)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG2);
	if (!pz_param)
		return DAT_ERROR(DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	pz_param->ia_handle = pz->object.ia;
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_pz_query);

DAT_RETURN dat_pz_free(DAT_PZ_HANDLE pz_handle)
{
	struct kd_pz *pz = kd_get(pz_handle, DAT_HANDLE_TYPE_PZ);

	if (!pz)
		return DAT_ERROR(DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PZ);
	if (pz->object.users || ib_dealloc_pd(pz->pd))
		return DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_PZ_IN_USE);
	kd_release(&pz->object);
	return DAT_SUCCESS;
}
EXPORT_SYMBOL(dat_pz_free);
