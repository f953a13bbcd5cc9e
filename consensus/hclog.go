package consensus

import (
	"context"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// raftLogger gives raft's messages to slog. Raft says at info and error level
// what is everyday business for a mesh whose peers come and go, so each is
// lowered by one; errors that matter reach us by other ways.
type raftLogger struct {
	log  *slog.Logger
	name string
	with []any
}

var _ hclog.Logger = raftLogger{}

func lowered(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelWarn
	case hclog.Warn:
		return slog.LevelInfo
	}
	return slog.LevelDebug
}

func (l raftLogger) Log(level hclog.Level, msg string, args ...any) {
	at := lowered(level)
	if level < hclog.Info || !l.log.Enabled(context.Background(), at) {
		return
	}
	l.log.Log(context.Background(), at, l.name+": "+msg, append(l.with[:len(l.with):len(l.with)], args...)...)
}

func (l raftLogger) Trace(msg string, args ...any) { l.Log(hclog.Trace, msg, args...) }
func (l raftLogger) Debug(msg string, args ...any) { l.Log(hclog.Debug, msg, args...) }
func (l raftLogger) Info(msg string, args ...any)  { l.Log(hclog.Info, msg, args...) }
func (l raftLogger) Warn(msg string, args ...any)  { l.Log(hclog.Warn, msg, args...) }
func (l raftLogger) Error(msg string, args ...any) { l.Log(hclog.Error, msg, args...) }

func (l raftLogger) IsTrace() bool { return false }
func (l raftLogger) IsDebug() bool { return false }
func (l raftLogger) IsInfo() bool  { return l.log.Enabled(context.Background(), slog.LevelDebug) }
func (l raftLogger) IsWarn() bool  { return l.log.Enabled(context.Background(), slog.LevelInfo) }
func (l raftLogger) IsError() bool { return true }

func (l raftLogger) ImpliedArgs() []any { return l.with }
func (l raftLogger) With(args ...any) hclog.Logger {
	l.with = append(l.with[:len(l.with):len(l.with)], args...)
	return l
}
func (l raftLogger) Name() string                        { return l.name }
func (l raftLogger) Named(name string) hclog.Logger      { l.name += "." + name; return l }
func (l raftLogger) ResetNamed(name string) hclog.Logger { l.name = name; return l }
func (l raftLogger) SetLevel(hclog.Level)                {}
func (l raftLogger) GetLevel() hclog.Level               { return hclog.Info }

func (l raftLogger) StandardLogger(*hclog.StandardLoggerOptions) *log.Logger {
	return log.New(l.StandardWriter(nil), "", 0)
}
func (l raftLogger) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return io.Discard }
