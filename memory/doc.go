// Package memory finds texts again: by their words, by their vectors, and by both.
//
// A [Collection] holds what one company remembers. It filters first and ranks what is
// left, so nothing that the asker may not read is ranked or counted. Words are ranked by
// BM25, vectors by their cosine, and both lists are joined by reciprocal rank fusion.
//
// The room knows no store and no company. It keeps words and vectors in main memory; the
// texts and vectors themselves are somebody else's rows, from which everything here can
// be built again. Only the graph over the vectors ([Space.Save]) is worth a file, because
// it is slow to build.
//
// All numbers that decide an order follow from integers or from single roundings of
// IEEE 754, so every node ranks the same records alike.
package memory
