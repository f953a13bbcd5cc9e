// Package cron is the kernel's clock: jobs of the mesh and of companies that publish to a
// topic, or start a process, at the times of a cron expression in a time zone.
//
// A job waits for one time, its due time. The leader's scheduler gives cron.tick for it, with
// the time that comes next, which no rule may compute: zones differ between versions of the
// program. The same command records the firing and publishes, or declares the process anew.
// A tick for another time than the due one is refused, so each time fires once, whoever leads.
package cron
