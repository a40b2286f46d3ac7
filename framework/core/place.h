#pragma once
// Placing the work: for each op and each atom of the mesh, the factor along which the op's work is
// cut. One rule for all ops and strategies; everything that travels follows from it.
//
//   PlaceWork(program);   // fills op.work, op.need and op.made of every op
//
// Per op and atom, the first that applies: (1) the cut of a parameter, because parameters do not
// move; (2) the cut of the anchor (dispatch works where its tokens are); (3) the cut of the output,
// because the result is wanted there; (4) a reduced factor on which all inputs agree; else the work
// is repeated. A factor that the op declares whole is never chosen by 2 to 4.

#include "domain/program.h"

namespace shardlab {

void PlaceWork(Program& program);

// Atoms along which the gradient of this parameter leaves the backward pass as a partial sum, over
// all its ops.
AtomMask PartialGradient(const Program& program, TensorId parameter);

}  // namespace shardlab
