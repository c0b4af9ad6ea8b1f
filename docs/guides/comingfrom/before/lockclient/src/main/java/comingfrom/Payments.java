package comingfrom;

import com.amazonaws.services.dynamodbv2.AcquireLockOptions;
import com.amazonaws.services.dynamodbv2.AmazonDynamoDBLockClient;
import com.amazonaws.services.dynamodbv2.LockItem;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.dynamodb.model.TransactWriteItem;
import software.amazon.awssdk.services.dynamodb.model.Update;

/** Moves money between accounts under the locks of both, with the Amazon DynamoDB Lock Client. */
final class Payments {
    private final DynamoDbClient db;
    private final AmazonDynamoDBLockClient locks;

    Payments(DynamoDbClient db, AmazonDynamoDBLockClient locks) {
        this.db = db;
        this.locks = locks;
    }

    /** Moves an amount, or returns false: there is not enough money. */
    boolean transfer(String from, String to, long amount) throws InterruptedException {
        boolean inOrder = from.compareTo(to) < 0; // else two transfers may wait for each other
        try (LockItem first = lock(inOrder ? from : to);
                LockItem second = lock(inOrder ? to : from)) {
            long had = balance(from);
            if (had < amount) {
                return false;
            }
            first.ensure(2, TimeUnit.SECONDS); // is the lease long enough for the write?
            second.ensure(2, TimeUnit.SECONDS);
            db.transactWriteItems(request -> request.transactItems(
                    set(from, had - amount), set(to, balance(to) + amount)));
            return true;
        }
    }

    private LockItem lock(String account) throws InterruptedException {
        return locks.acquireLock(AcquireLockOptions.builder("account:" + account)
                .withTimeUnit(TimeUnit.MILLISECONDS)
                .withRefreshPeriod(50L)
                .withAdditionalTimeToWaitForLock(30_000L)
                .build());
    }

    private long balance(String account) {
        return Long.parseLong(db.getItem(request -> request.tableName("accounts").key(id(account)).consistentRead(true))
                .item().get("Balance").n());
    }

    private static TransactWriteItem set(String account, long balance) {
        return TransactWriteItem.builder().update(Update.builder()
                .tableName("accounts").key(id(account))
                .updateExpression("SET Balance = :balance")
                .conditionExpression("attribute_not_exists(Moved)") // while another program takes over
                .expressionAttributeValues(Map.of(":balance", AttributeValue.fromN(Long.toString(balance))))
                .build()).build();
    }

    static Map<String, AttributeValue> id(String id) {
        return Map.of("ID", AttributeValue.fromS(id));
    }
}
