// Package selvage holds no code: its test checks properties of the tree itself.
package selvage
