package rds

// BatchSize is the longest pipeline of a batch.
const BatchSize = maxBatch
