// Package memory is what agents remember: texts with what they are about, where they came
// from and who may read them. Finding them again is the room of the same name outside.
package memory
