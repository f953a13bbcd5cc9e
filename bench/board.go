package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

const (
	boardHTTP   = 23600
	boardMesh   = 29970
	boardAgents = 40
	boardIssues = 1_000
)

// boardPart measures the pages in a Chromium, on a mesh of its own with a company of 40
// agents and 1,000 issues, and what they add to the program. It needs what make board and
// make system install.
func boardPart(ctx context.Context, b *bench) (err error) {
	grown, err := boardGrowth(ctx, b.Dir)
	if err != nil {
		return err
	}
	row("what the pages add to the program", fmt.Sprintf("%.2f MB", float64(grown)/1e6), "≤ 4 MB")
	m, err := startMeshAs(ctx, b.Config, "board", boardHTTP, boardMesh)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.down()) }()
	url := m.nodes[0].HTTP
	seeded, err := inWeb(ctx, "test/seed.mjs", url, strconv.Itoa(boardAgents), strconv.Itoa(boardIssues))
	if err != nil {
		return err
	}
	prefix, _, _ := strings.Cut(strings.TrimSpace(seeded), " ")
	out, err := inWeb(ctx, "test/bench.mjs", url, prefix, strconv.Itoa(int(b.Board.Seconds())))
	fmt.Print(out)
	return err
}

// inWeb runs a script of the pages' sources.
func inWeb(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "node", args...)
	cmd.Dir, cmd.Stderr = "../ui/web", os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("node %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

// boardGrowth builds the program with the pages and with empty files in their place, and
// returns the difference.
func boardGrowth(ctx context.Context, dir string) (int64, error) {
	top, err := filepath.Abs("..")
	if err != nil {
		return 0, err
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		return 0, err
	}
	replace := map[string]string{}
	err = filepath.WalkDir(filepath.Join(top, "ui", "dist"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			replace[path] = empty
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return 0, err
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return 0, err
	}
	var sizes [2]int64
	for i, more := range [][]string{nil, {"-overlay", list}} {
		bin := filepath.Join(dir, "grown")
		args := append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", bin}, more...)
		cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/node")...)
		cmd.Dir, cmd.Env = top, append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("build: %w: %s", err, out)
		}
		sizes[i] = fileSize(bin)
	}
	return sizes[0] - sizes[1], nil
}
