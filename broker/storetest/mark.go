package storetest

func markClauses() []clause { return nil }
