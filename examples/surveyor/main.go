// Command surveyor is an example agent: it checks an issue out, surveys a Go
// repository (formatting, comments, open TODOs), reports what it found as a comment,
// reports its cost and closes the issue.
//
// The issue's description names the survey in its first line: "survey: gofmt",
// "survey: comments" or "survey: todo". For an issue that names none it gives an
// overview of the repository, and says what else it can do. The repository is given by
// SURVEY_REPO.
package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/selvage-mesh/selvage/examples/agentkit"
)

const (
	// surveyTimeout bounds one survey.
	surveyTimeout = 10 * time.Minute
	// maxReport bounds a comment in bytes.
	maxReport = 16 << 10
	// maxFileBytes bounds what a survey reads of one file.
	maxFileBytes = 1 << 20
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "surveyor:", err)
		os.Exit(1)
	}
}

func run() error {
	agent, err := agentkit.FromEnv()
	if err != nil {
		return err
	}
	repo := os.Getenv("SURVEY_REPO")
	if _, err := os.Stat(filepath.Join(repo, ".git")); err != nil {
		return fmt.Errorf("SURVEY_REPO=%q is no Git checkout: set it to one in the agent's adapterConfig.env", repo)
	}
	issues, err := agent.Mine("todo,in_progress")
	if err != nil {
		return fmt.Errorf("list my issues: %w", err)
	}
	for _, issue := range issues {
		if err := work(agent, repo, issue); err != nil {
			return fmt.Errorf("%s: %w", issue.Identifier, err)
		}
	}
	fmt.Printf("surveyed %d issue(s)\n", len(issues))
	return nil
}

func work(agent *agentkit.Agent, repo string, issue agentkit.Issue) error {
	kind := surveyOf(issue.Description)
	var refused *agentkit.Refused
	if err := agent.CheckOut(issue.ID); errors.As(err, &refused) && refused.Status == 409 {
		fmt.Printf("%s is held by another run\n", issue.Identifier)
		return nil
	} else if err != nil {
		return err
	}
	start := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), surveyTimeout)
	defer cancel()
	report, err := surveys[kind](ctx, repo)
	if err != nil {
		return fmt.Errorf("survey %s: %w", kind, err)
	}
	fmt.Printf("%s: %s took %s\n", issue.Identifier, cmp.Or(kind, "overview"), time.Since(start).Round(time.Millisecond))
	if err := agent.Comment(issue.ID, clip(report)); err != nil {
		return err
	}
	if err := agent.ReportCost(issue.ID, time.Since(start)); err != nil {
		return err
	}
	return agent.SetStatus(issue.ID, "done")
}

var surveys = map[string]func(context.Context, string) (string, error){
	"":         overview,
	"gofmt":    gofmtSurvey,
	"comments": commentSurvey,
	"todo":     todoSurvey,
}

// surveyOf is the survey that a description names, "" for none.
func surveyOf(description string) string {
	first, _, _ := strings.Cut(description, "\n")
	kind := strings.TrimSpace(strings.TrimPrefix(first, "survey:"))
	if surveys[kind] == nil {
		return ""
	}
	return kind
}

// overview says what the repository is and who looked at it from where: an answer to
// every issue that asks for no survey.
func overview(ctx context.Context, repo string) (string, error) {
	lines := 0
	_, files, err := eachFile(ctx, repo, func(_ string, text []byte) ([]string, error) {
		lines += bytes.Count(text, []byte("\n"))
		return nil, nil
	})
	if err != nil {
		return "", err
	}
	last, err := command(ctx, repo, "git", "log", "-1", "--format=%h %s")
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, last)
	}
	host, err := os.Hostname()
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("Still here, on %s. %s has %d Go files with %d lines; its last commit is %s.\n\n"+
		"I am an example that needs no model, and I do surveys: put `survey: gofmt`, `survey: comments` or "+
		"`survey: todo` into the first line of the description.",
		host, filepath.Base(repo), files, lines, strings.TrimSpace(last)), nil
}

func gofmtSurvey(ctx context.Context, repo string) (string, error) {
	out, err := command(ctx, repo, "gofmt", "-l", ".")
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	files := strings.Fields(out)
	if len(files) == 0 {
		return "`gofmt -l .` lists no file: everything is formatted.", nil
	}
	return fmt.Sprintf("`gofmt -l .` lists %d file(s):\n\n```\n%s```", len(files), out), nil
}

func commentSurvey(ctx context.Context, repo string) (string, error) {
	found, files, err := eachFile(ctx, repo, bareIn)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return fmt.Sprintf("Every exported name in %d Go files has a comment.", files), nil
	}
	return fmt.Sprintf("%d exported name(s) in %d Go files have no comment:\n\n%s", len(found), files,
		strings.Join(found, "\n")), nil
}

func todoSurvey(ctx context.Context, repo string) (string, error) {
	found, files, err := eachFile(ctx, repo, todosIn)
	if err != nil {
		return "", err
	}
	if len(found) == 0 {
		return fmt.Sprintf("No open marker in %d Go files.", files), nil
	}
	return fmt.Sprintf("%d open marker(s) in %d Go files:\n\n%s", len(found), files, strings.Join(found, "\n")), nil
}

// eachFile collects what look finds in the Go files of a repository, of which each
// is cut at maxFileBytes, and counts them.
func eachFile(ctx context.Context, repo string, look func(path string, text []byte) ([]string, error)) (found []string,
	files int, err error) {
	root, err := os.OpenRoot(repo)
	if err != nil {
		return nil, 0, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != "." || d.Name() == "node_modules" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		files++
		b, err := fs.ReadFile(root.FS(), path)
		if err != nil {
			return err
		}
		lines, err := look(path, b[:min(len(b), maxFileBytes)])
		found = append(found, lines...)
		return err
	})
	return found, files, err
}

// bareIn lists the exported functions and types of a file that have no comment. A
// file that is no Go, or a test, has none.
func bareIn(path string, text []byte) (out []string, _ error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || strings.HasSuffix(path, "_test.go") {
		return nil, nil
	}
	bare := func(name *ast.Ident, doc ...*ast.CommentGroup) {
		if name.IsExported() && cmp.Or(doc...) == nil {
			out = append(out, fmt.Sprintf("- `%s:%d` %s", path, files.Position(name.Pos()).Line, name.Name))
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil { // a method's meaning is often that of its interface
				bare(d.Name, d.Doc)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if t, ok := s.(*ast.TypeSpec); ok {
					bare(t.Name, d.Doc, t.Doc)
				}
			}
		}
	}
	return out, nil
}

// todosIn lists the comment lines of a file that begin with the usual markers.
func todosIn(path string, text []byte) (out []string, _ error) {
	sc := bufio.NewScanner(bytes.NewReader(text))
	sc.Buffer(nil, maxFileBytes+1)
	for n := 1; sc.Scan(); n++ {
		_, comment, ok := strings.Cut(sc.Text(), "// ")
		if ok && (strings.HasPrefix(comment, "TO"+"DO") || strings.HasPrefix(comment, "FIX"+"ME")) {
			out = append(out, fmt.Sprintf("- `%s:%d` %s", path, n, strings.TrimSpace(comment)))
		}
	}
	return out, sc.Err()
}

func command(ctx context.Context, dir, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func clip(s string) string {
	if len(s) <= maxReport {
		return s
	}
	return strings.ToValidUTF8(s[:maxReport], "") + "\n… (cut)"
}
