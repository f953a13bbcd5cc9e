#include "textflag.h"

// Sixteen components a step: widen int8 to int16, multiply, add neighbours to int32.

// func dot16(q *int16, v *int8, n int) int32
TEXT ·dot16(SB), NOSPLIT, $0-28
	MOVQ  q+0(FP), SI
	MOVQ  v+8(FP), DI
	MOVQ  n+16(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y3, Y3, Y3
	CMPQ  CX, $32
	JLT   last16

pair16:
	VPMOVSXBW (DI), Y1
	VPMADDWD  (SI), Y1, Y1
	VPADDD    Y1, Y0, Y0
	VPMOVSXBW 16(DI), Y2
	VPMADDWD  32(SI), Y2, Y2
	VPADDD    Y2, Y3, Y3
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	CMPQ      CX, $32
	JGE       pair16

last16:
	TESTQ     CX, CX
	JZ        sum16
	VPMOVSXBW (DI), Y1
	VPMADDWD  (SI), Y1, Y1
	VPADDD    Y1, Y0, Y0

sum16:
	VPADDD       Y3, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, AX
	VZEROUPPER
	MOVL         AX, ret+24(FP)
	RET

// func dot8(u, v *int8, n int) int32
TEXT ·dot8(SB), NOSPLIT, $0-28
	MOVQ  u+0(FP), SI
	MOVQ  v+8(FP), DI
	MOVQ  n+16(FP), CX
	VPXOR Y0, Y0, Y0
	VPXOR Y3, Y3, Y3
	CMPQ  CX, $32
	JLT   last8

pair8:
	VPMOVSXBW (DI), Y1
	VPMOVSXBW (SI), Y4
	VPMADDWD  Y4, Y1, Y1
	VPADDD    Y1, Y0, Y0
	VPMOVSXBW 16(DI), Y2
	VPMOVSXBW 16(SI), Y5
	VPMADDWD  Y5, Y2, Y2
	VPADDD    Y2, Y3, Y3
	ADDQ      $32, SI
	ADDQ      $32, DI
	SUBQ      $32, CX
	CMPQ      CX, $32
	JGE       pair8

last8:
	TESTQ     CX, CX
	JZ        sum8
	VPMOVSXBW (DI), Y1
	VPMOVSXBW (SI), Y4
	VPMADDWD  Y4, Y1, Y1
	VPADDD    Y1, Y0, Y0

sum8:
	VPADDD       Y3, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0x4E, X0, X1
	VPADDD       X1, X0, X0
	VPSHUFD      $0xB1, X0, X1
	VPADDD       X1, X0, X0
	VMOVD        X0, AX
	VZEROUPPER
	MOVL         AX, ret+24(FP)
	RET

// func dot16x4(q *int16, v *[4]*int8, n int, out *[4]int32)
// Four vectors at a time: their cache lines are fetched side by side.
TEXT ·dot16x4(SB), NOSPLIT, $0-32
	MOVQ  q+0(FP), SI
	MOVQ  v+8(FP), AX
	MOVQ  n+16(FP), CX
	MOVQ  out+24(FP), DX
	MOVQ  0(AX), R8
	MOVQ  8(AX), R9
	MOVQ  16(AX), R10
	MOVQ  24(AX), R11
	VPXOR Y0, Y0, Y0
	VPXOR Y1, Y1, Y1
	VPXOR Y2, Y2, Y2
	VPXOR Y3, Y3, Y3
	XORQ  BX, BX

step4:
	VMOVDQU   (SI)(BX*2), Y4
	VPMOVSXBW (R8)(BX*1), Y5
	VPMOVSXBW (R9)(BX*1), Y6
	VPMOVSXBW (R10)(BX*1), Y7
	VPMOVSXBW (R11)(BX*1), Y8
	VPMADDWD  Y4, Y5, Y5
	VPMADDWD  Y4, Y6, Y6
	VPMADDWD  Y4, Y7, Y7
	VPMADDWD  Y4, Y8, Y8
	VPADDD    Y5, Y0, Y0
	VPADDD    Y6, Y1, Y1
	VPADDD    Y7, Y2, Y2
	VPADDD    Y8, Y3, Y3
	ADDQ      $16, BX
	CMPQ      BX, CX
	JLT       step4

	// Each sum has eight parts: add neighbours twice, then the halves.
	VPHADDD      Y1, Y0, Y0
	VPHADDD      Y3, Y2, Y2
	VPHADDD      Y2, Y0, Y0
	VEXTRACTI128 $1, Y0, X1
	VPADDD       X1, X0, X0
	VMOVDQU      X0, (DX)
	VZEROUPPER
	RET

// func fetch(v *int8, n int)
TEXT ·fetch(SB), NOSPLIT, $0-16
	MOVQ v+0(FP), SI
	MOVQ n+8(FP), CX

line:
	PREFETCHT0 (SI)
	ADDQ       $64, SI
	SUBQ       $64, CX
	JGT        line
	RET
