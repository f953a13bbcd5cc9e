// Package models lets a run's agent ask a real model through the gateway: llama.cpp's server with a small Gemma, on
// this machine.
//
// `make models` installs both; without them the tests are skipped.
package models
