// Package board has tests only: the board's pages in a real browser, on a real mesh of processes.
package board
