package storetest

func recordClauses() []clause { return nil }
