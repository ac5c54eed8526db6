/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Loadable modules: the part of the kernel's interface that a client of the midlayer uses
 * beside include/rdma. `softib modprobe NODE FILE.so` loads a module into the stack of a
 * node; docs/MODULES.md describes how to write one.
 *
 * Contexts. The init and exit functions, add() and remove() of clients and work items run
 * on a fiber and may sleep; while one sleeps, the fabric goes on. Completion handlers,
 * handlers of events, MADs, queries and connections, and timers run from the loop and may
 * not sleep: a module that does is ended as one that crashed. No two of a node's functions
 * ever run at once, so that a lock is needed only where its holder sleeps.
 *
 * Names and rules are those of the Linux kernel.
 */
#ifndef SOFTIB_MODULE_H
#define SOFTIB_MODULE_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rdma/ib_cm.h"
#include "rdma/ib_mad.h"
#include "rdma/ib_sa.h"
#include "rdma/ib_verbs.h"
#include "rdma/rdma_cm.h"

#pragma GCC visibility push(default)

struct module_state; /* the loader's */

/* --- the module itself --- */

struct kernel_param;

/** struct kernel_param_ops - a type of parameters
 *  set(): read @value into param->arg. 0; -EINVAL
 *  get(): write the value to @text, as snprintf() does. Return: its length */
struct kernel_param_ops {
	int (*set)(const char *value, const struct kernel_param *param);
	int (*get)(char *text, size_t bytes, const struct kernel_param *param);
};

/** struct kernel_param - one parameter */
struct kernel_param {
	const char *name, *type;
	const struct kernel_param_ops *ops;
	void *arg;
	/* --- of an array: arg is the first of its elements, which @ops are of --- */
	unsigned int max, elem_bytes; /* 0: it is none */
	unsigned int *num;	      /* how many were given; NULL: nobody asks */
	unsigned int perm;
};

/** struct kernel_symbol - EXPORT_SYMBOL() */
struct kernel_symbol {
	const char *name;
	void *address;
};

/** struct softib_trace_point - TRACE_POINT() of softib/trace.h. @on: set by the loader */
struct softib_trace_point {
	const char *name, *format, *doc;
	u8 on;
};

/** SOFTIB_MODULE_ABI - changes when what is below, or a struct of include/rdma, does in
 *  another way than its size shows */
#define SOFTIB_MODULE_ABI 6

struct module {
	u32 abi, device_bytes, ops_bytes;
	const char *name;	    /* set by the loader; what it owns is listed by it */
	struct module_state *state; /* the loader's */
	const struct kernel_param *params, *params_end;
	const struct kernel_symbol *symbols, *symbols_end; /* those that it exports */
	struct softib_trace_point *trace, *trace_end;
};

extern const struct kernel_param __start_softib_param[]
	__attribute__((weak, visibility("hidden")));
extern const struct kernel_param __stop_softib_param[]
	__attribute__((weak, visibility("hidden")));
extern const struct kernel_symbol __start_softib_symbol[]
	__attribute__((weak, visibility("hidden")));
extern const struct kernel_symbol __stop_softib_symbol[]
	__attribute__((weak, visibility("hidden")));
extern struct softib_trace_point __start_softib_tracepoint[]
	__attribute__((weak, visibility("hidden")));
extern struct softib_trace_point __stop_softib_tracepoint[]
	__attribute__((weak, visibility("hidden")));

#ifndef SOFTIB_MODULE_LOADER
/* Each file of a module has one, of which the linker keeps one. */
__attribute__((weak, visibility("protected"))) struct module __this_module = {
	.abi = SOFTIB_MODULE_ABI,
	.device_bytes = sizeof(struct ib_device),
	.ops_bytes = sizeof(struct ib_device_ops),
	.name = "",
	.params = __start_softib_param,
	.params_end = __stop_softib_param,
	.symbols = __start_softib_symbol,
	.symbols_end = __stop_softib_symbol,
	.trace = __start_softib_tracepoint,
	.trace_end = __stop_softib_tracepoint,
};
#define THIS_MODULE (&__this_module)
#endif

#ifndef KBUILD_MODNAME
#define KBUILD_MODNAME "module"
#endif

/* what a module creates is listed by its name */
#undef SOFTIB_CLIENT_NAME
#define SOFTIB_CLIENT_NAME (THIS_MODULE->name)

#define __init
#define __exit
#define __initdata
#define __read_mostly
#define __maybe_unused __attribute__((unused))
#define __used	       __attribute__((used))
#define __printf(a, b) __attribute__((format(printf, a, b)))

/** EXPORT_SYMBOL() - other modules of the node may use the function or variable @name. One
 *  that does is loaded after this one, which stays loaded until it has gone */
#define EXPORT_SYMBOL(symbol)                                                            \
	static const struct kernel_symbol softib_symbol_##symbol                         \
		__attribute__((used, aligned(8), section("softib_symbol"))) = {          \
			#symbol, (void *)&(symbol)}
#define EXPORT_SYMBOL_GPL EXPORT_SYMBOL

/** module_init(), module_exit() - @fn runs when the module is loaded, and before it is
 *  unloaded. One that has no module_exit() is never unloaded */
#define module_init(fn)                                                                  \
	__attribute__((visibility("default"))) int (*const softib_module_init)(void) = (fn)
#define module_exit(fn)                                                                  \
	__attribute__((visibility("default"))) void (*const softib_module_exit)(void) = (fn)

#define MODULE_INFO_(tag, unique, text)                                                  \
	static const char modinfo_##tag##_##unique[]                                     \
		__attribute__((used, section(".modinfo"))) = #tag "=" text
#define MODULE_INFO_AT_(tag, line, text) MODULE_INFO_(tag, line, text)
#define MODULE_LICENSE(text)		 MODULE_INFO_AT_(license, __LINE__, text)
#define MODULE_AUTHOR(text)		 MODULE_INFO_AT_(author, __LINE__, text)
#define MODULE_DESCRIPTION(text)	 MODULE_INFO_AT_(description, __LINE__, text)
#define MODULE_VERSION(text)		 MODULE_INFO_AT_(version, __LINE__, text)
#define MODULE_ALIAS(text)		 MODULE_INFO_AT_(alias, __LINE__, text)
#define MODULE_PARM_DESC(name, text)	 MODULE_INFO_AT_(parm, __LINE__, #name ":" text)

extern const struct kernel_param_ops param_ops_bool, param_ops_byte, param_ops_short,
	param_ops_ushort, param_ops_int, param_ops_uint, param_ops_long, param_ops_ulong,
	param_ops_ullong;
/** param_ops_charp - the text is the module's for as long as it is loaded */
extern const struct kernel_param_ops param_ops_charp;

/** module_param() - `softib modprobe NODE FILE.so NAME=VALUE` sets the variable @name.
 *  @type: bool, byte, short, ushort, int, uint, long, ulong, ullong, charp.
 *  @perm: 0: `softib lsmod --parameters` does not show it; else as in the kernel */
#define module_param(name, type, perm)                                                   \
	MODULE_PARAM_(name, #type, &param_ops_##type, &(name), 0, 0, NULL, perm)
#define module_param_named(name, variable, type, perm)                                   \
	MODULE_PARAM_(name, #type, &param_ops_##type, &(variable), 0, 0, NULL, perm)
/** module_param_array() - NAME=VALUE,VALUE... sets the elements of the array @name, as many as
 *  it has at most. *@nump, which may be NULL, is set to how many were given */
#define module_param_array(name, type, nump, perm)                                       \
	MODULE_PARAM_(name, "array of " #type, &param_ops_##type,                        \
		      MODULE_PARAM_ARRAY_(name, nump), perm)
#define module_param_array_named(name, array, type, nump, perm)                          \
	MODULE_PARAM_(name, "array of " #type, &param_ops_##type,                        \
		      MODULE_PARAM_ARRAY_(array, nump), perm)
#define MODULE_PARAM_ARRAY_(array, nump)                                                 \
	&(array)[0], sizeof(array) / sizeof((array)[0]), sizeof((array)[0]),             \
		(unsigned int *)(nump)
#define MODULE_PARAM_(name, ...)                                                         \
	static const struct kernel_param softib_param_##name                             \
		__attribute__((used, aligned(8), section("softib_param"))) = {           \
			#name, __VA_ARGS__}

/** try_module_get() - the module stays loaded until module_put(). False: it goes */
bool try_module_get(struct module *module);
void module_put(struct module *module);
#define __module_get(module) ((void)try_module_get(module))
/** is_module_text_address() - is a function at @addr one of a module that is loaded and has not
 *  crashed? One that calls functions of its users asks before. Context: any */
bool is_module_text_address(unsigned long addr);

/* --- the log, which is softibd's --- */

#define KERN_SOH	"\001"
#define KERN_EMERG	KERN_SOH "0"
#define KERN_ALERT	KERN_SOH "1"
#define KERN_CRIT	KERN_SOH "2"
#define KERN_ERR	KERN_SOH "3"
#define KERN_WARNING	KERN_SOH "4"
#define KERN_NOTICE	KERN_SOH "5"
#define KERN_INFO	KERN_SOH "6"
#define KERN_DEBUG	KERN_SOH "7"
#define KERN_CONT	""

/** softib_printk() - a line of the log with the node's and the module's name before it */
__attribute__((format(printf, 2, 3)))
int softib_printk(const struct module *module, const char *fmt, ...);
#define printk(...) softib_printk(THIS_MODULE, __VA_ARGS__)

#ifndef pr_fmt
#define pr_fmt(fmt) fmt
#endif
#define pr_emerg(fmt, ...)  printk(KERN_EMERG pr_fmt(fmt), ##__VA_ARGS__)
#define pr_crit(fmt, ...)   printk(KERN_CRIT pr_fmt(fmt), ##__VA_ARGS__)
#define pr_err(fmt, ...)    printk(KERN_ERR pr_fmt(fmt), ##__VA_ARGS__)
#define pr_warn(fmt, ...)   printk(KERN_WARNING pr_fmt(fmt), ##__VA_ARGS__)
#define pr_notice(fmt, ...) printk(KERN_NOTICE pr_fmt(fmt), ##__VA_ARGS__)
#define pr_info(fmt, ...)   printk(KERN_INFO pr_fmt(fmt), ##__VA_ARGS__)
#define pr_cont(fmt, ...)   printk(KERN_CONT fmt, ##__VA_ARGS__)
#ifdef DEBUG
#define pr_debug(fmt, ...) printk(KERN_DEBUG pr_fmt(fmt), ##__VA_ARGS__)
#else
#define pr_debug(fmt, ...)                                                               \
	do {                                                                             \
		if (0)                                                                   \
			printk(KERN_DEBUG pr_fmt(fmt), ##__VA_ARGS__);                   \
	} while (0)
#endif

/** BUG() - the module is ended as one that crashed */
#define BUG()                                                                            \
	do {                                                                             \
		printk(KERN_CRIT "BUG at %s:%d in %s()", __FILE__, __LINE__, __func__);  \
		__builtin_trap();                                                        \
	} while (0)
#define BUG_ON(condition)                                                                \
	do {                                                                             \
		if (unlikely(condition))                                                 \
			BUG();                                                           \
	} while (0)
#define WARN_ON(condition)                                                               \
	({                                                                               \
		bool warn_ = (condition);                                                \
		if (unlikely(warn_))                                                     \
			printk(KERN_WARNING "WARNING at %s:%d in %s(): %s", __FILE__,    \
			       __LINE__, __func__, #condition);                          \
		warn_;                                                                   \
	})

/* --- memory --- */

static inline void *kmalloc(size_t size, gfp_t flags)
{
	return malloc(size);
}

static inline void *kzalloc(size_t size, gfp_t flags)
{
	return calloc(1, size);
}

static inline void *kcalloc(size_t n, size_t size, gfp_t flags)
{
	return calloc(n, size);
}

static inline char *kstrdup(const char *text, gfp_t flags)
{
	return text ? strdup(text) : NULL;
}

static inline void kfree(const void *memory)
{
	free((void *)memory);
}

#define PAGE_SHIFT 12
#define PAGE_SIZE  (1ul << PAGE_SHIFT)
#define PAGE_MASK  (~(PAGE_SIZE - 1))
#define PAGE_ALIGN(addr) (((addr) + PAGE_SIZE - 1) & PAGE_MASK)
#define offset_in_page(addr) ((unsigned long)(addr) & ~PAGE_MASK)

/** __get_free_pages() - 2^@order pages in one piece, which begin at a multiple of PAGE_SIZE.
 *  Return: their address; 0: no memory */
static inline unsigned long __get_free_pages(gfp_t flags, unsigned int order)
{
	return (unsigned long)(uintptr_t)aligned_alloc(PAGE_SIZE, PAGE_SIZE << order);
}

static inline void free_pages(unsigned long addr, unsigned int order)
{
	free((void *)(uintptr_t)addr);
}

static inline unsigned long get_zeroed_page(gfp_t flags)
{
	unsigned long page = __get_free_pages(flags, 0);

	return page ? (unsigned long)(uintptr_t)memset((void *)(uintptr_t)page, 0, PAGE_SIZE) : 0;
}

#define __get_free_page(flags) __get_free_pages(flags, 0)
#define free_page(addr)	       free_pages(addr, 0)

#define page_address(page) ((void *)(page))
#define virt_to_page(addr) ((struct page *)((uintptr_t)(addr) & PAGE_MASK))
#define alloc_pages(flags, order) ((struct page *)(uintptr_t)__get_free_pages(flags, order))
#define alloc_page(flags)	  alloc_pages(flags, 0)
#define __free_pages(page, order) free_pages((unsigned long)(uintptr_t)(page), order)
#define __free_page(page)	  __free_pages(page, 0)

/* --- time --- */

#define HZ 1000
#define MAX_SCHEDULE_TIMEOUT LONG_MAX
/** jiffies - milliseconds of a clock that never goes back */
#define jiffies (softib_jiffies())
unsigned long softib_jiffies(void);
#define msecs_to_jiffies(ms)  ((unsigned long)(ms))
#define usecs_to_jiffies(us)  (((unsigned long)(us) + 999) / 1000)
#define jiffies_to_msecs(j)   ((unsigned int)(j))
#define time_after(a, b)      ((long)((b) - (a)) < 0)
#define time_before(a, b)     time_after(b, a)

/** msleep() - Context: may sleep */
void msleep(unsigned int ms);
#define ssleep(seconds)		usleep_range((seconds) * 1000000ul, 0)
#define usleep_range(us, us_max) msleep((unsigned int)(((us) + 999) / 1000))

/* --- waiting --- */

/** wait_queue_head_t - fibers that wait for a condition */
typedef struct wait_queue_head {
	struct list_head waiters;
} wait_queue_head_t;

#define __WAIT_QUEUE_HEAD_INITIALIZER(name) {LIST_HEAD_INIT((name).waiters)}
#define DECLARE_WAIT_QUEUE_HEAD(name)                                                    \
	wait_queue_head_t name = __WAIT_QUEUE_HEAD_INITIALIZER(name)
#define init_waitqueue_head(queue) INIT_LIST_HEAD(&(queue)->waiters)

/** wake_up() - let those who wait look at their condition again. Context: any */
void wake_up(wait_queue_head_t *queue);
#define wake_up_all	      wake_up
#define wake_up_interruptible wake_up

/** softib_wait() - sleep until wake_up(), for @timeout jiffies at most. Context: may
 *  sleep. Return: the jiffies that are left; 0: the time is over */
unsigned long softib_wait(wait_queue_head_t *queue, unsigned long timeout);

/** wait_event() - until @condition holds; wait_event_timeout(): 0 it did not in time, else
 *  the jiffies that were left, 1 at least */
#define wait_event(queue, condition)                                                     \
	do {                                                                             \
		while (!(condition))                                                     \
			softib_wait(&(queue), MAX_SCHEDULE_TIMEOUT);                     \
	} while (0)
#define wait_event_timeout(queue, condition, timeout)                                    \
	({                                                                               \
		unsigned long left_ = (unsigned long)(timeout);                          \
		bool holds_;                                                             \
		while (!(holds_ = (condition)) && left_)                                 \
			left_ = softib_wait(&(queue), left_);                            \
		(long)(holds_ && !left_ ? 1 : left_);                                    \
	})
#define wait_event_interruptible(queue, condition)                                       \
	({                                                                               \
		wait_event(queue, condition);                                            \
		0;                                                                       \
	})

/** struct completion - something that will be over: complete() may come before or after
 *  the wait for it */
struct completion {
	unsigned int done;
	wait_queue_head_t wait;
};

#define COMPLETION_INITIALIZER(name) {0, __WAIT_QUEUE_HEAD_INITIALIZER((name).wait)}
#define DECLARE_COMPLETION(name) struct completion name = COMPLETION_INITIALIZER(name)
#define DECLARE_COMPLETION_ONSTACK DECLARE_COMPLETION

static inline void init_completion(struct completion *x)
{
	x->done = 0;
	init_waitqueue_head(&x->wait);
}

static inline void reinit_completion(struct completion *x)
{
	x->done = 0;
}

static inline void complete(struct completion *x)
{
	if (x->done != UINT_MAX)
		x->done++;
	wake_up(&x->wait);
}

static inline void complete_all(struct completion *x)
{
	x->done = UINT_MAX;
	wake_up(&x->wait);
}

static inline bool completion_done(const struct completion *x)
{
	return x->done;
}

static inline bool try_wait_for_completion(struct completion *x)
{
	bool done = x->done;

	if (done && x->done != UINT_MAX)
		x->done--;
	return done;
}

/** wait_for_completion() - Context: may sleep */
#define wait_for_completion(x) wait_event((x)->wait, try_wait_for_completion(x))
#define wait_for_completion_timeout(x, timeout)                                          \
	((unsigned long)wait_event_timeout((x)->wait, try_wait_for_completion(x), timeout))
#define wait_for_completion_interruptible(x)                                             \
	wait_event_interruptible((x)->wait, try_wait_for_completion(x))
#define wait_for_completion_interruptible_timeout(x, timeout)                            \
	((long)wait_for_completion_timeout(x, timeout))

/** struct mutex - of code that sleeps while it holds it */
struct mutex {
	bool held;
	wait_queue_head_t wait;
};

#define __MUTEX_INITIALIZER(name) {false, __WAIT_QUEUE_HEAD_INITIALIZER((name).wait)}
#define DEFINE_MUTEX(name) struct mutex name = __MUTEX_INITIALIZER(name)

static inline void mutex_init(struct mutex *lock)
{
	lock->held = false;
	init_waitqueue_head(&lock->wait);
}

static inline bool mutex_trylock(struct mutex *lock)
{
	bool was_held = lock->held;

	lock->held = true;
	return !was_held;
}

/** mutex_lock() - Context: may sleep */
static inline void mutex_lock(struct mutex *lock)
{
	wait_event(lock->wait, mutex_trylock(lock));
}

static inline void mutex_unlock(struct mutex *lock)
{
	lock->held = false;
	wake_up(&lock->wait);
}

#define mutex_destroy(lock) ((void)(lock))

/** spinlock_t - of code that does not sleep, which nobody disturbs here: it holds nothing */
typedef struct {
	char unused;
} spinlock_t;

#define DEFINE_SPINLOCK(name)		    spinlock_t name = {0}
#define spin_lock_init(lock)		    ((void)(lock))
#define spin_lock(lock)			    ((void)(lock))
#define spin_unlock(lock)		    ((void)(lock))
#define spin_lock_irq(lock)		    ((void)(lock))
#define spin_unlock_irq(lock)		    ((void)(lock))
#define spin_lock_bh(lock)		    ((void)(lock))
#define spin_unlock_bh(lock)		    ((void)(lock))
#define spin_lock_irqsave(lock, flags)	    ((void)(lock), (flags) = 0)
#define spin_unlock_irqrestore(lock, flags) ((void)(lock), (void)(flags))

/** atomic_t - the midlayer's threads are one, and so plain arithmetic is atomic */
typedef struct {
	int counter;
} atomic_t;

#define ATOMIC_INIT(n)		{(n)}
#define atomic_read(v)		((v)->counter)
#define atomic_set(v, n)	((void)((v)->counter = (n)))
#define atomic_inc(v)		((void)(v)->counter++)
#define atomic_dec(v)		((void)(v)->counter--)
#define atomic_add(n, v)	((void)((v)->counter += (n)))
#define atomic_sub(n, v)	((void)((v)->counter -= (n)))
#define atomic_inc_return(v)	(++(v)->counter)
#define atomic_dec_return(v)	(--(v)->counter)
#define atomic_dec_and_test(v)	(!--(v)->counter)

/* --- work items --- */

struct work_struct;
typedef void (*work_func_t)(struct work_struct *work);

/** struct work_struct - a function to be called soon, where it may sleep. A module's work
 *  items run one after another in the order in which they were scheduled */
struct work_struct {
	struct list_head entry;
	work_func_t func;
	struct module *module;
};

#define INIT_WORK(work, fn)                                                              \
	do {                                                                             \
		INIT_LIST_HEAD(&(work)->entry);                                          \
		(work)->func = (fn);                                                     \
		(work)->module = THIS_MODULE;                                            \
	} while (0)
#define DECLARE_WORK(name, fn)                                                           \
	struct work_struct name = {LIST_HEAD_INIT((name).entry), fn, THIS_MODULE}

/** schedule_work() - Context: any. Return: false: it was scheduled already */
bool schedule_work(struct work_struct *work);
/** cancel_work_sync() - it is not scheduled and does not run when this returns. Not from
 *  the work itself. Context: may sleep. Return: true when it was scheduled */
bool cancel_work_sync(struct work_struct *work);
/** flush_work() - until it has run. Context: may sleep. Return: false: it was idle */
bool flush_work(struct work_struct *work);

struct delayed_timer; /* the loader's */

/** struct delayed_work - a work item that is scheduled when a time is over */
struct delayed_work {
	struct work_struct work;
	struct delayed_timer *timer; /* NULL: no time runs */
};

#define INIT_DELAYED_WORK(dwork, fn)                                                     \
	do {                                                                             \
		INIT_WORK(&(dwork)->work, fn);                                           \
		(dwork)->timer = NULL;                                                   \
	} while (0)
#define to_delayed_work(w) container_of(w, struct delayed_work, work)

/** schedule_delayed_work() - in @delay jiffies. Return: false: it waits already, or there is
 *  no memory */
bool schedule_delayed_work(struct delayed_work *dwork, unsigned long delay);
/** mod_delayed_work_() - the same, from now on. Return: true when it waited already */
bool mod_delayed_work_(struct delayed_work *dwork, unsigned long delay);
#define mod_delayed_work(queue, dwork, delay) mod_delayed_work_(dwork, delay)
bool cancel_delayed_work(struct delayed_work *dwork);
bool cancel_delayed_work_sync(struct delayed_work *dwork);

/* --- the midlayer's functions that a module calls by way of the loader --- */

int softib_register_client(struct module *module, struct ib_client *client);
void softib_unregister_client(struct module *module, struct ib_client *client);
void softib_sa_register_client(struct module *module, struct ib_sa_client *client);
void softib_sa_unregister_client(struct module *module, struct ib_sa_client *client);
struct rdma_cm_id *softib_create_id(struct module *module, rdma_cm_event_handler handler,
				    void *context, enum rdma_ucm_port_space ps,
				    enum ib_qp_type qp_type);

#ifndef SOFTIB_MODULE_LOADER
/* A client of a module sees the devices of its node alone. */
#define ib_register_client(client)   softib_register_client(THIS_MODULE, client)
#define ib_unregister_client(client) softib_unregister_client(THIS_MODULE, client)
#undef ib_sa_register_client
#define ib_sa_register_client(client) softib_sa_register_client(THIS_MODULE, client)
#define ib_sa_unregister_client(client) softib_sa_unregister_client(THIS_MODULE, client)

struct net;
#define init_net (*(struct net *)NULL)
/** rdma_create_id() - as in Linux: @net is the module's node, whichever is given */
#define rdma_create_id(net, handler, context, ps, qp_type)                               \
	softib_create_id(THIS_MODULE, handler, context, ps, qp_type)
#endif

#pragma GCC visibility pop

#include "softib/timer.h"

#endif
