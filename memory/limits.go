package memory

const (
	// MinDims and MaxDims bound the components of a vector. Sentence models have 256 to
	// 3,072 of them. The upper bound keeps the sum of products within 32 bits.
	MinDims = 8
	MaxDims = 4096

	// Exact is the number of vectors up to which a search looks at every one. Below it a
	// scan is as fast as a graph, finds everything, and needs no upkeep.
	Exact = 20_000

	// degree is the number of links that a vector gets on each level of the graph; the
	// lowest level holds up to twice as many. beamBuild and beamSearch are how many
	// candidates an insertion and a search follow.
	degree     = 16
	beamBuild  = 100
	beamSearch = 84
	// maxLevel bounds the levels, and so what chosen IDs can do to the graph: 16^7
	// vectors are more than a collection holds.
	maxLevel = 7
	// mendAfter is the number of removals after which the graph is looked through for
	// vectors that nothing leads to.
	mendAfter = 256
	// maxGraphFile bounds the saved graph that is read: 2 million vectors have 300 MB.
	maxGraphFile = 512 << 20

	// MaxRecords bounds a collection. A posting holds a record's number in 24 bits.
	MaxRecords = 200_000
	// MaxText bounds the bytes of one text.
	MaxText = 16 << 10
	// MaxQuery bounds the bytes of a question, MaxQueryWords the words of it that count,
	// maxExpansions the words that one prefix stands for.
	MaxQuery      = 2 << 10
	MaxQueryWords = 32
	maxExpansions = 64
	// maxWord bounds one word, in runes; the rest of a longer one is left out.
	maxWord = 64
	// MaxResults bounds the results of one search.
	MaxResults = 100
	// candidates is how many records each of the two lists gives to the fusion at least.
	candidates = 200
)

// Numbers and counts share 32 bits in a posting.
const _ = uint(1<<24 - MaxRecords - 1)

// A sum of MaxDims products of an int8 and an int16 of at most queryMost fits an int32.
const _ = uint(1<<31 - 1 - MaxDims*128*queryMost)
