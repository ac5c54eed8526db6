/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
/*
 * Faults in the code of modules. A module is in softibd's own address space, so a fault in
 * it is a signal to softibd. The handler unwinds the stack: from the instruction that
 * faulted through the functions of the midlayer that the module may have called, then
 * through those of the module, to whoever called the module: the core or the loader. There
 * it goes on as if the module's function had returned 0. That caller's own state is
 * whole; the module is marked as crashed, and nothing of it is called on a fiber any more
 * (module_crashed()).
 *
 * What is not repaired: memory that the module has overwritten before, and a function of
 * the midlayer that faulted in the middle, since the module gave it a bad pointer. A fault
 * in the middle of a function of libc that libc has called, such as malloc() on a heap
 * that is damaged, is left to end softibd, and so is abort(): locks may be held there.
 *
 * Unwinding needs the tables that compilers write by default on x86-64 and arm64
 * (.eh_frame). Elsewhere a fault ends softibd, which tells whose it was.
 */
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <ucontext.h>
#include <unwind.h>

#include "modules/private.h"

#define ALT_STACK_BYTES ((size_t)256 << 10) /* the unwinder's */

/* registers that a function gives back as it found them: their number in .eh_frame, and
 * their place in a signal's context */
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

/** struct walk - up the stack */
struct walk {
	uintptr_t pc;		     /* that faulted */
	const void *libc;	     /* where it is */
	bool begun;		     /* the frame that faulted was seen */
	int libc_frames;	     /* below the module's */
	struct module_state *state;  /* whose frames were met first; NULL: none yet */
	uintptr_t at;		     /* where in its code */
	bool found;		     /* their caller */
	uintptr_t ip, cfa, kept[16]; /* of the caller */
};

static const char *bug; /* why module_bug() traps */

_Noreturn void module_bug(const char *why)
{
	bug = why;
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
	if (!walk->state || here) {
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
/* A call of something that is no code: what called it is on top of the stack, or in the
 * link register. */
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

static void tell(const struct walk *walk, int number, const siginfo_t *info)
{
	const char *function = "a static function";
	Dl_info where;

	if (bug) {
		module_tell(walk->state, "BUG: %s; its calls end here, and what it has is freed", bug);
		return;
	}
	if (dladdr((const void *)walk->pc, &where) && where.dli_sname)
		function = where.dli_sname;
	module_tell(walk->state,
		    "crashed: SIG%s at address %p in %s (addr2line -fe FILE.so %#zx tells the "
		    "line of the module); its calls end here, and what it has is freed",
		    name_of(number), info->si_addr, function,
		    (size_t)(walk->at - walk->state->from));
}

/* as if there were no handler: with a core file, where those are written */
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
	if (!walk.state->dead)
		tell(&walk, number, info);
	bug = NULL;
	if (!walk.found || number == SIGABRT || walk.libc_frames > 1) {
		module_tell(walk.state, "softibd cannot go on after that");
		die(number);
		return;
	}
	module_crashed(walk.state);
#ifdef PC
	go_on_in_caller(context, &walk);
#endif
}

void module_catch_faults(void)
{
	static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT};
	static char alt_stack[ALT_STACK_BYTES]; /* also of a stack that has overflowed */
	static bool done;
	const stack_t stack = {.ss_sp = alt_stack, .ss_size = sizeof(alt_stack)};
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct walk first = {.begun = true};

	if (done)
		return;
	done = true;
	_Unwind_Backtrace(visit, &first); /* what it allocates the first time, it allocates now */
	sigaltstack(&stack, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaction(numbers[i], &action, NULL);
}
