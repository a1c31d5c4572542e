package storetest

func pinClauses() []clause { return nil }
