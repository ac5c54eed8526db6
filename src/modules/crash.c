/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults in the code of modules. A module is in softibd's address space, so a fault in it
 * raises a signal in softibd. The handler unwinds the stack from the faulting instruction:
 * first through functions of the midlayer that the module may have called, then through
 * those of the module, up to the caller of the module, which is the core, the loader, or a
 * module that calls back one that uses it. A module is thus blamed for what it passes to
 * those that it uses, and they are not blamed for its callbacks.
 * In the caller execution continues as if the module's function had returned 0. The state of
 * that caller is intact. The module is marked as crashed, and its functions are not called on a
 * fiber any more (module_crashed()).
 *
 * Two things are not repaired: memory that the module has overwritten before, and the state
 * of a function of the midlayer that faulted because the module passed a bad pointer. A
 * fault inside nested functions of libc, such as malloc() on a damaged heap, ends softibd,
 * and so does abort(), because locks may be held there.
 *
 * Unwinding needs the tables that compilers emit by default on x86-64 and arm64
 * (.eh_frame). On other processors a fault ends softibd, after a message that names the
 * module.
 */
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

#include "modules/private.h"

#define ALT_STACK_BYTES ((size_t)256 << 10) /* stack of the handler and the unwinder */

/* callee-saved registers: their number in .eh_frame, and their index in a signal's context */
#if defined(__x86_64__)
static const struct {
	int dwarf, place;
} kept[] = {{3, REG_RBX},  {6, REG_RBP},  {12, REG_R12},
	    {13, REG_R13}, {14, REG_R14}, {15, REG_R15}};
#define REGISTER(uc, place) ((uc)->uc_mcontext.gregs[place])
#define PC(uc)		    ((uc)->uc_mcontext.gregs[REG_RIP])
#define SP(uc)		    ((uc)->uc_mcontext.gregs[REG_RSP])
#define RESULT(uc)	    ((uc)->uc_mcontext.gregs[REG_RAX])
#elif defined(__aarch64__)
static const struct {
	int dwarf, place;
} kept[] = {{19, 19}, {20, 20}, {21, 21}, {22, 22}, {23, 23}, {24, 24},
	    {25, 25}, {26, 26}, {27, 27}, {28, 28}, {29, 29}};
#define REGISTER(uc, place) ((uc)->uc_mcontext.regs[place])
#define PC(uc)		    ((uc)->uc_mcontext.pc)
#define SP(uc)		    ((uc)->uc_mcontext.sp)
#define RESULT(uc)	    ((uc)->uc_mcontext.regs[0])
#endif

/** struct walk - state of unwinding the stack */
struct walk {
	uintptr_t pc;		     /* of the faulting instruction */
	const void *libc;	     /* where libc is loaded */
	bool begun;		     /* the faulting frame was reached */
	int libc_frames;	     /* frames of libc below those of the module */
	struct module_state *state;  /* the module whose frames were reached first; NULL: none yet */
	uintptr_t at;		     /* address in the module's code */
	bool found;		     /* the caller of the module was found */
	uintptr_t ip, cfa, kept[16]; /* registers of the caller */
};

static const char *bug; /* why module_bug() traps */
static bool ends_quietly;

_Noreturn void module_bug(const char *why)
{
	bug = why;
	ends_quietly = !why;
	__builtin_trap();
}

static const void *object_of(uintptr_t address)
{
	Dl_info info;

	return dladdr((const void *)address, &info) ? info.dli_fbase : NULL;
}

static _Unwind_Reason_Code visit(struct _Unwind_Context *frame, void *arg)
{
	uintptr_t ip = _Unwind_GetIP(frame);
	struct walk *walk = arg;
	struct module_state *here;

	walk->begun |= ip == walk->pc;
	if (!walk->begun) /* the handler's own frames */
		return _URC_NO_REASON;
	here = module_at(ip);
	if (!walk->state && !here && object_of(ip) == walk->libc)
		walk->libc_frames++;
	if (!walk->state || (here && !module_uses(walk->state, here))) {
		walk->at = walk->state || !here ? walk->at : ip;
		walk->state = here ? here : walk->state;
		return _URC_NO_REASON;
	}
	walk->ip = ip;
	walk->cfa = _Unwind_GetCFA(frame);
#ifdef PC
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		walk->kept[i] = _Unwind_GetGR(frame, kept[i].dwarf);
#endif
	walk->found = true;
	return _URC_END_OF_STACK;
}

#ifdef PC
/* After a call to an address without code, the return address is on top of the stack, or in
 * the link register. */
static void return_from_nowhere(ucontext_t *uc)
{
	if (object_of((uintptr_t)PC(uc)))
		return;
#if defined(__x86_64__)
	memcpy(&PC(uc), (const void *)SP(uc), sizeof(uintptr_t));
	SP(uc) += (long)sizeof(uintptr_t);
#else
	PC(uc) = uc->uc_mcontext.regs[30];
#endif
}

static void go_on_in_caller(ucontext_t *uc, const struct walk *walk)
{
	PC(uc) = (__typeof__(PC(uc)))walk->ip;
	SP(uc) = (__typeof__(SP(uc)))walk->cfa;
	RESULT(uc) = 0;
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		REGISTER(uc, kept[i].place) = (__typeof__(PC(uc)))walk->kept[i];
}
#endif

static const char *name_of(int number)
{
	const char *abbreviation = sigabbrev_np(number);

	return abbreviation ? abbreviation : "?";
}

static void report(const struct walk *walk, int number, const siginfo_t *info)
{
	const char *function = "a static function";
	Dl_info where;

	if (bug) {
		module_log(walk->state, "BUG: %s; its calls end here, and what it has is freed", bug);
		return;
	}
	if (dladdr((const void *)walk->pc, &where) && where.dli_sname)
		function = where.dli_sname;
	module_log(walk->state,
		    "crashed: SIG%s at address %p in %s (addr2line -fe FILE.so %#zx tells the "
		    "line of the module); its calls end here, and what it has is freed",
		    name_of(number), info->si_addr, function,
		    (size_t)(walk->at - walk->state->from));
}

/* end as without a handler, with a core file if the system writes those */
static void die(int number)
{
	signal(number, SIG_DFL);
	raise(number);
}

static void on_fault(int number, siginfo_t *info, void *context)
{
	struct walk walk = {.libc = object_of((uintptr_t)&strlen)};

#ifdef PC
	return_from_nowhere(context);
	walk.pc = (uintptr_t)PC((ucontext_t *)context);
#else
	walk.begun = true;
#endif
	_Unwind_Backtrace(visit, &walk);
	if (!walk.state) {
		die(number);
		return;
	}
	if (!walk.state->dead && !ends_quietly)
		report(&walk, number, info);
	bug = NULL;
	if (!walk.found || number == SIGABRT || walk.libc_frames > 1) {
		module_log(walk.state, "softibd cannot go on after that");
		die(number);
		return;
	}
	if (!ends_quietly)
		module_crashed(walk.state);
	ends_quietly = false;
#ifdef PC
	go_on_in_caller(context, &walk);
#endif
}

static struct walk interrupted;

struct module_state *module_interrupted(void *context, bool *is_own)
{
	interrupted = (struct walk){.libc = object_of((uintptr_t)&strlen)};
#ifdef PC
	interrupted.pc = (uintptr_t)PC((ucontext_t *)context);
	_Unwind_Backtrace(visit, &interrupted);
#endif
	*is_own = interrupted.found && module_at(interrupted.pc);
	return interrupted.state;
}

void module_abandon(void *context, const char *what)
{
	const char *function = "a static function";
	Dl_info where;

	if (dladdr((const void *)interrupted.pc, &where) && where.dli_sname)
		function = where.dli_sname;
	module_log(interrupted.state,
		   "%s %s (addr2line -fe FILE.so %#zx tells the line of the module); its calls end "
		   "here, and what it has is freed",
		   function, what, (size_t)(interrupted.at - interrupted.state->from));
	module_crashed(interrupted.state);
#ifdef PC
	go_on_in_caller(context, &interrupted);
#endif
}

void module_catch_faults(void)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
	static char alt_stack[ALT_STACK_BYTES]; /* works even if the stack has overflowed */
	static bool done;
	const stack_t stack = {.ss_sp = alt_stack, .ss_size = sizeof(alt_stack)};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct walk first = {.begun = true};

	if (done)
		return;
	done = true;
	_Unwind_Backtrace(visit, &first); /* the unwinder allocates memory in its first use, so use it once now */
	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaction(numbers[i], &action, NULL);
}
