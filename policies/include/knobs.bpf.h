/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Tunables: numbers that the user sets before a policy is loaded or while it
 * runs. Each one is a variable in the section .data.knobs whose declaration
 * tags say what it is; simulator and kernel loader read the same tags:
 *
 *	unit:<unit>   ns, ms, us, levels, percent, count, or bool
 *	doc:<text>    what it does, one line
 *	min:<number>  least value, decimal
 *	max:<number>  greatest value, decimal
 *	set:load      it is read when the policy is loaded, so that it cannot change later
 *	kernel:<number>  what a kernel's loader sets unless the user says
 *		      otherwise, decimal; without it the default
 *
 * The default is the variable's value in the object, which is what a simulation
 * runs with. A policy cannot ask where it runs, and need not: what only a real
 * machine wants, such as a guard against starvation, is a knob with a value for
 * kernels, and the loader knows where it loads. Volatile, since it
 * changes behind the compiler's back. Write `least` and `most` as plain
 * decimal numbers: they become text.
 */
#ifndef RUNSLICE_KNOBS_BPF_H
#define RUNSLICE_KNOBS_BPF_H

#include <bpf.h>

#define KNOB(type, name, value, unit, doc, least, most)		\
	volatile type name SEC(".data.knobs")			\
	__decl_tag("unit:" unit) __decl_tag("doc:" doc)		\
	__decl_tag("min:" #least) __decl_tag("max:" #most) = value

/* A knob that the policy reads when it is loaded, and never again. */
#define KNOB_AT_LOAD(type, name, value, unit, doc, least, most)	\
	KNOB(type, name __decl_tag("set:load"), value, unit, doc, least, most)

/* A knob with a value of its own, `on_kernel`, where a kernel runs the policy. */
#define KNOB_ON_KERNEL(type, name, value, on_kernel, unit, doc, least, most)	\
	volatile type name SEC(".data.knobs")			\
	__decl_tag("unit:" unit) __decl_tag("doc:" doc)		\
	__decl_tag("min:" #least) __decl_tag("max:" #most)	\
	__decl_tag("kernel:" #on_kernel) = value

#endif /* RUNSLICE_KNOBS_BPF_H */
