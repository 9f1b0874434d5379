/*
 * lockstep.h - data-parallel deep-learning training whose result does not depend on how the work is distributed.
 *
 * A worked example: train the small CNN on glyphs, the built-in dataset, and print its accuracy.
 *
 *     #include <lockstep/lockstep.h>
 *     #include <stdio.h>
 *
 *     int main(void)
 *     {
 *         ls_train_options options = LS_TRAIN_OPTIONS_INIT;
 *         options.model = "cnn";
 *         options.data = "glyphs";
 *         options.samples = 6000;
 *         options.run = "runs/example";
 *
 *         ls_train_result result;
 *         if (ls_train(&options, &result)) {
 *             fprintf(stderr, "%s\n", ls_last_error());
 *             return 1;
 *         }
 *         printf("accuracy %.4f, parameters %016llx\n", result.test_accuracy,
 *                (unsigned long long)result.fingerprint);
 *         return 0;
 *     }
 *
 * It is examples/first.c. Compile with: cc first.c $(pkg-config --cflags --libs lockstep)
 *
 * Where to read on:
 *   status.h    how calls report failure
 *   data.h      datasets, by name or your own
 *   text.h      vocabularies for models of text
 *   graph.h     describe your own model
 *   operators.h the list of operators that graph.h makes functions of
 *   operator.h  custom operators and losses, and a check of their gradients
 *   inspect.h   walk a finished graph
 *   models.h    the models that come with Lockstep
 *   hooks.h     callbacks of a run, and a handle that stops it
 *   train.h     training and evaluation, and every setting they take
 *   model.h     a model in memory: load, predict, parameters, save, export
 *   trainer.h   training step by step, in a custom loop
 *   generate.h  texts that a language model continues
 *   predict.h   predictions for files of images, numbers or text
 *   serve.h     predictions over HTTP
 *   exchange.h  an all-reduce with the same bits on any number of ranks, for MPI programs
 *   bench.h     throughput measurements
 *   sweep.h     many of them: published tables, by recipe
 *   faults.h    throughput while nodes are killed
 *   plan.h      forecast the training speed of a job on a cluster
 *   probe.h     what machines and links can do, measured
 *   report.h    tables and plots of what was measured
 *   launch.h    starting nodes on other hosts
 *   names.h     suggestions for mistyped names
 *   bindings.h  default values of options, for other languages than C
 *   export.h    how functions of the library are marked
 *   version.h   the version of these headers
 *
 * Threads: objects may be used from one thread at a time unless a function says otherwise. Runs, models and trainers of
 * several threads do not disturb each other; under mpirun a process has one ls_train() at a time. The library prints
 * only where its header says so.
 *
 * bench.h, sweep.h, faults.h, plan.h, probe.h, report.h and serve.h are in liblockstep-tools: link with pkg-config
 * lockstep-tools.
 */
#ifndef LOCKSTEP_LOCKSTEP_H
#define LOCKSTEP_LOCKSTEP_H

#include <lockstep/bench.h>
#include <lockstep/bindings.h>
#include <lockstep/data.h>
#include <lockstep/exchange.h>
#include <lockstep/export.h>
#include <lockstep/faults.h>
#include <lockstep/generate.h>
#include <lockstep/graph.h>
#include <lockstep/hooks.h>
#include <lockstep/inspect.h>
#include <lockstep/launch.h>
#include <lockstep/model.h>
#include <lockstep/models.h>
#include <lockstep/names.h>
#include <lockstep/operator.h>
#include <lockstep/plan.h>
#include <lockstep/predict.h>
#include <lockstep/probe.h>
#include <lockstep/report.h>
#include <lockstep/serve.h>
#include <lockstep/status.h>
#include <lockstep/sweep.h>
#include <lockstep/text.h>
#include <lockstep/train.h>
#include <lockstep/trainer.h>
#include <lockstep/version.h>

#endif
