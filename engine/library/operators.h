// Ids of the library operators, for recording. Inputs, outputs, attributes and scalars of each are documented where it
// is registered.
#pragma once

namespace ae::engine::library {

extern const int kMm, kAddmm, kBmm, kBaddbmm, kAddmv, kDot;    // matmul.cpp
extern const int kAttention, kAttentionBackward;               // attention.cpp
extern const int kIndexSelect, kEmbedding, kIndex, kIndexPut;  // index.cpp
extern const int kEmbeddingBackward;                           // embedding_backward.cpp
extern const int kCheckTargets;                                // check.cpp
extern const int kCheckDivisor, kCheckProbabilities;           // check_operands.cpp
extern const int kCat;                                         // cat.cpp
extern const int kLstm, kLstmBackward;                         // recurrent.cpp

}  // namespace ae::engine::library
