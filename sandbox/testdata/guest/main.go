// Command guest does what its first argument says; tests run it metered and not.
package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"time"
)

func fib(n int) int {
	if n < 2 {
		return n
	}
	return fib(n-1) + fib(n-2)
}

func deep(n int) int {
	if n == 0 {
		return 0
	}
	var pad [16]int
	pad[n%16] = n
	return deep(n-1) + pad[n%16]
}

func main() {
	switch verb := append(os.Args, "hello", "hello")[1]; verb {
	case "hello":
		fmt.Println("hello", strings.Join(os.Args[min(2, len(os.Args)):], " "))
	case "work":
		words := map[string]int{}
		s := bufio.NewScanner(os.Stdin)
		for s.Scan() {
			for _, w := range strings.Fields(s.Text()) {
				words[w]++
			}
		}
		var keys []string
		for k := range words {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		b, _ := json.Marshal(words)
		fmt.Printf("%x %d %d\n", sha256.Sum256(b), len(keys), fib(22))
	case "spin":
		for i := 0; ; i++ {
			if i == -1 {
				fmt.Println(i)
			}
		}
	case "grow":
		var all [][]byte
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			all = append(all, b)
		}
	case "deep":
		fmt.Println(deep(1 << 30))
	case "flood":
		line := strings.Repeat("x", 1023) + "\n"
		for {
			if _, err := io.WriteString(os.Stdout, line); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(7)
			}
		}
	case "cat":
		_, err := io.Copy(os.Stdout, os.Stdin)
		if err != nil {
			os.Exit(3)
		}
	case "sleep":
		time.Sleep(time.Hour)
	case "sort":
		a := make([]int, 20000)
		x := uint32(7)
		for i := range a {
			x = x*1664525 + 1013904223
			a[i] = int(x >> 8)
		}
		sort.Ints(a)
		fmt.Println(a[0], a[len(a)/2])
	case "env":
		fmt.Println(os.Getenv("WHO"))
		fmt.Println(time.Now().UTC().Format(time.RFC3339Nano))
	case "files":
		files(os.Args[2:])
	case "exit":
		os.Exit(5)
	case "panic":
		panic("oh")
	}
}

// files reads, writes and lists, and tries to leave.
func files(args []string) {
	say := func(what string, err error) {
		if err != nil {
			err = fmt.Errorf("%s", err.Error()[strings.LastIndex(err.Error(), ": ")+1:])
		}
		fmt.Println(what, err)
	}
	b, err := os.ReadFile("/work/in.txt")
	say(string(b), err)
	say("write", os.WriteFile("/work/out.txt", []byte("out"), 0o644))
	f, err := os.OpenFile("/work/out.txt", os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteString("+more")
		f.Close()
	}
	say("append", err)
	say("mkdir", os.MkdirAll("/work/a/b", 0o755))
	say("rename", os.Rename("/work/out.txt", "/work/a/b/out.txt"))
	entries, err := os.ReadDir("/work")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	say(strings.Join(names, ","), err)
	_, err = os.ReadFile("/work/../secret.txt")
	say("dots", err)
	_, err = os.ReadFile("/work/link")
	say("link", err)
	_, err = os.ReadFile("/etc/passwd")
	say("passwd", err)
	_, err = os.ReadFile("/work/pipe")
	say("pipe", err)
	say("symlink", os.Symlink("/etc/passwd", "/work/mine"))
	say("readonly", os.WriteFile("/ro/x", []byte("x"), 0o644))
	b, err = os.ReadFile("/ro/r.txt")
	say(string(b), err)
}
