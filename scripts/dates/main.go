// Command dates runs the suites that read the time on other days than today, so that a test whose
// dates are fixed fails now and not on some day.
//
//	dates [TESTED]
//
// TESTED is the program of scripts/tested. The suites take their time from kit.Clock, which
// SELVAGE_DATE sets. Each test program is linked once: go test runs it through this program
// (dates -each), which runs it on every day. With what is printed of a failure it is repeated.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // of a machine that has none
)

// suites are what is run on each day: the API with the rules below it, whose tests have most of
// the dates. What takes long and asks for no date is left out, and stories with a clock of their own.
var suites = []string{"-skip", "Flood|Recorded|BodiesTakeOwnRows|FiltersByRowsOfOthers|WhatABodyMayHold|" +
	"BadBodiesAreRefused|LostMajority|LargeCompanyTravels|NullClears|EachToolOfTheContract|BadRequestsOfA2A|Hashing",
	"./api/..."}

// meshes are run on the farthest days alone: nodes that are put together, with their consensus,
// sessions, tokens and schedules.
var meshes = []string{"-parallel", "4", "-run",
	"Spec_|Gate|Purse|Metered|Permit|Schedule|Cron|Timer|Message|Inbox|Away|Resume|Join|Token", "./testnet/testkit"}

// scripts are run with the meshes: daemons and commands as people start them.
var scripts = []string{"-parallel", "4", "-run", "TestScripts/(routine|company|scheduling|waits)$", "./cmd/node"}

const (
	// fromEnv is the time from which the days are reckoned: for all test programs the same.
	fromEnv = "SELVAGE_DATES_FROM"
	// failedEnv is the file of what scripts/test says again at its end.
	failedEnv = "SELVAGE_FAILED"
)

// zone is where summer time begins and ends.
const zone = "Europe/Berlin"

// A day is a time at which a test may fail that passes now.
type day struct {
	name string
	at   time.Time
	far  bool // meshes are run too
}

// days returns what comes next of each kind, seen from now.
func days(now time.Time) ([]day, error) {
	now = now.UTC().Truncate(time.Second)
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC).AddDate(0, 1, 0)
	leapDay := func(year int) time.Time { return time.Date(year, 2, 29, 23, 59, 50, 0, time.UTC) } // else 1 March
	leap := leapDay(now.Year())
	for leap.Month() != time.February || leap.Before(now) {
		leap = leapDay(leap.Year() + 1)
	}
	out := []day{
		{name: "tomorrow", at: now.AddDate(0, 0, 1)},
		// The month turns while tests run.
		{name: "the last seconds of the month", at: month.Add(-10 * time.Second)},
		{name: "the first minute of a month", at: month.Add(30 * time.Second)},
		{name: "the end of 29 February", at: leap, far: true},
		{name: "in 40 days", at: now.AddDate(0, 0, 40)},
		{name: "in 400 days", at: now.AddDate(0, 0, 400), far: true},
	}
	there, err := time.LoadLocation(zone)
	if err != nil {
		return nil, err
	}
	for at := now.In(there); len(out) < 8; {
		_, next := at.ZoneBounds()
		if next.IsZero() {
			return nil, fmt.Errorf("the clocks of %s change no more after %s", zone, at)
		}
		before, name := next.Add(-10*time.Second), "summer time ends"
		if next.IsDST() {
			name = "summer time begins"
		}
		if before.IsDST() != next.IsDST() { // a year's end is a bound, too, of far years
			out = append(out, day{name: name, at: before})
		}
		at = next
	}
	return out, nil
}

// env is the environment that makes it this day.
func (d day) env() []string {
	return []string{"SELVAGE_DATE=" + d.at.Format(time.RFC3339), "TZ=" + d.at.Location().String()}
}

func main() {
	from, err := time.Parse(time.RFC3339, cmp.Or(os.Getenv(fromEnv), time.Now().Format(time.RFC3339)))
	var all []day
	if err == nil {
		all, err = days(from)
	}
	if err == nil {
		if args := os.Args[1:]; len(args) > 1 && (args[0] == "-each" || args[0] == "-far") {
			err = each(all, args[0] == "-far", args[1:])
		} else {
			err = test(from, args)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "dates:", err)
		os.Exit(1)
	}
}

// test runs go test for the suites, with this program between it and the test programs.
func test(from time.Time, tested []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if len(tested) == 0 {
		tested = []string{"go", "run", "./scripts/tested"}
	}
	run := func(stage, on string, suite []string) error {
		args := slices.Concat(tested[1:], []string{"-stage", stage, "-count=1", "-short", "-timeout", "60m",
			"-exec", self + " " + on}, suite)
		cmd := exec.Command(tested[0], args...)
		cmd.Env = append(os.Environ(), fromEnv+"="+from.Format(time.RFC3339))
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		return cmd.Run()
	}
	return errors.Join(run("rooms on other days", "-each", suites), run("meshes on far days", "-far", meshes),
		run("programs on far days", "-far", scripts))
}

// each runs a test program on each day, in its folder.
func each(all []day, far bool, program []string) error {
	var failed []string
	for _, d := range all {
		if far && !d.far {
			continue
		}
		on := d.name + ": " + strings.Join(d.env(), " ")
		fmt.Println("on another day,", on)
		cmd := exec.Command(program[0], program[1:]...)
		cmd.Env = append(os.Environ(), d.env()...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		if err := cmd.Run(); err != nil {
			failed = append(failed, on)
		}
	}
	if len(failed) == 0 {
		return nil
	}
	dir, _ := os.Getwd()
	return note(fmt.Sprintf("FAIL on other days, in %s:\n  %s\n", dir, strings.Join(failed, "\n  ")))
}

// note says what failed, for the end of what is printed too.
func note(what string) error {
	if file := os.Getenv(failedEnv); file != "" {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(what)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return errors.New(strings.TrimSpace(what))
}
