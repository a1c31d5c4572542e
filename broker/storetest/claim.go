package storetest

func claimClauses() []clause { return nil }
