package storetest

func endClauses() []clause { return nil }
