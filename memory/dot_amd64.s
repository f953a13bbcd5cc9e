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
