package memory

// lanes is what the number of stored components is rounded up to: what one step of the
// vector instructions takes.
const lanes = 16

func strideOf(dims int) int { return (dims + lanes - 1) / lanes * lanes }

// dotPlain and dotSelfPlain are the products in plain Go. They add up integers, so that
// they agree to the last bit with the vector instructions.
func dotPlain(q []int16, v []int8) int32 {
	var a, b, c, d int32
	v = v[:len(q)]
	for i := 0; i+4 <= len(q); i += 4 {
		x, y := q[i:i+4:i+4], v[i:i+4:i+4]
		a += int32(x[0]) * int32(y[0])
		b += int32(x[1]) * int32(y[1])
		c += int32(x[2]) * int32(y[2])
		d += int32(x[3]) * int32(y[3])
	}
	return a + b + c + d
}

func dotPlain4(q []int16, v *[4][]int8, out *[4]int32) {
	for i := range v {
		out[i] = dotPlain(q, v[i])
	}
}

func dotSelfPlain(u, v []int8) int32 {
	var a, b, c, d int32
	v = v[:len(u)]
	for i := 0; i+4 <= len(u); i += 4 {
		x, y := u[i:i+4:i+4], v[i:i+4:i+4]
		a += int32(x[0]) * int32(y[0])
		b += int32(x[1]) * int32(y[1])
		c += int32(x[2]) * int32(y[2])
		d += int32(x[3]) * int32(y[3])
	}
	return a + b + c + d
}
